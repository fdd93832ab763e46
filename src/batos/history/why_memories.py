"""The reasons for a memory: who said it, the file that it was taken from, and the memories that it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from batos.history.why_nodes import Asking, make_commit, make_node
from batos.image import roots
from batos.image.views.past import first_writing
from batos.memory.records import memory_claims, memory_records
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.records.memory_lineage import EDITS

#: The slots in which a memory names others, and how it came of them.
_MADE_OF: Final = (("of", "summarises"), ("depends_on", "holds only with"), (EDITS, "edited from"))


def explain_memory(asking: Asking, document: UvmObject) -> WhyNode:
    """Return a memory with what it was made from."""
    slots = own_slots(document)
    marks = sum(len(memory_claims.marks_of(each)) for each in memory_records.chunks_of(asking.root, document))
    stands = "" if slots["standing"] == "current" and not marks else f", {slots['standing']}, {marks} statements marked"
    text = f"{slots['title']} ({slots['kind']} of {slots['user']}, trust {slots['trust']}{stands})"
    because = list(_explain_origin(asking, document)) if asking.is_new(slots["name"]) else []
    return make_node("memory", text, because, slots["name"], memory_claims.stated_at(slots))


def _explain_origin(asking: Asking, document: UvmObject) -> Iterator[WhyNode]:
    slots = own_slots(document)
    if slots["mission"]:
        record = asking.record(slots["mission"])
        if record is None:
            yield make_node("mission", "a mission of another user")
        else:
            said = "what was said in" if slots["kind"] == "turn" else "the answer to"
            yield make_node(
                "mission", f"{said}: {record.brief.value['text']}", (), slots["mission"], record.brief.accepted_at
            )
    elif slots["source"]:
        yield make_node("source", f"taken from {slots['source']}", ref=slots["sha256"])
    else:
        yield make_node("source", f"typed by {slots['user']}")
    for slot, how in _MADE_OF:
        for name in slots.get(slot, ()):
            yield _explain_source(asking, name, how)
    yield make_commit(first_writing(asking.root, document), "remembered")


def _explain_source(asking: Asking, name: str, how: str) -> WhyNode:
    """Return a memory that another was made of; a fact may name one by its key, or one that is forgotten."""
    found = asking.root[roots.DOCUMENTS].get(name)
    if found is None:
        try:
            found = memory_records.find_document(asking.root, name, asking.user)
        except NotFound:
            return make_node("memory", f"{how} {name}")
    if asking.user not in (None, own_slots(found)["user"]):
        return make_node("memory", f"{how} a memory of another user")
    node = explain_memory(asking, found)
    return {**node, "text": f"{how} {node['text']}"}
