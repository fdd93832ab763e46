"""The reasons for a memory: the mission or file that it came from, and what it stands for or was folded into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from batos.history.why_nodes import NOT_RECORDED, Asking, explain_reference, make_commit, make_node
from batos.image import roots
from batos.image.past import first_writing
from batos.memory.records import memory_archives, memory_claims, memory_records
from batos.memory.records.memories_set_aside import FOLDED_FOR, STANDS_FOR
from batos.memory.regions import ALIKE
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.records.memory_lineage import EDITS

#: The slots in which a memory names others, and how it came of them.
_MADE_OF: Final = ((STANDS_FOR, "summarises"), ("depends_on", "holds only with"), (EDITS, "edited from"))


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
        said = "what was said in: " if slots["kind"] == "turn" else "the answer to: "
        yield explain_reference(asking, slots["mission"], said)
    elif "reason" in slots:
        yield _explain_fold(asking, document)
    elif slots["source"]:
        yield make_node("source", f"taken from {slots['source']}", ref=slots["sha256"])
    else:
        yield make_node("source", f"typed by {slots['user']}")
    if above := memory_archives.summary_of(document):
        yield make_node("fold", f"{above} stands for it; `batos curate --undo {above}` brings it back", ref=above)
    for slot, how in _MADE_OF:
        for place, name in enumerate(slots.get(slot, ())):
            yield _explain_source(asking, name, how + (_tell_measure(document, place) if slot == STANDS_FOR else ""))
    yield make_commit(first_writing(asking.root, document), "remembered")


def _explain_fold(asking: Asking, summary: UvmObject) -> WhyNode:
    """Return the rule by which memories were folded, who wrote their summary, and the way to bring them back."""
    slots = own_slots(summary)
    told = slots.get(FOLDED_FOR)
    if slots["reason"] == "redundant":
        why = f"its memories say nearly the same: {ALIKE:g} of a sketch of their words agrees with the first"
    else:
        since = f"since {told[0][:10]}" if told else f"for a time that was {NOT_RECORDED}"
        why = f"nobody had recalled its memories {since}"
    mission = slots.get("written_in")
    wrote = [explain_reference(asking, mission, "written in: ")] if mission else []
    undo = make_node("undo", f"`batos curate --undo {slots['name']}` brings back all that it stands for")
    return make_node("fold", f"{why} ({slots['reason']}, written by {slots['written_by']})", [*wrote, undo])


def _tell_measure(summary: UvmObject, place: int) -> str:
    """Return what the rule measured of a memory that a summary stands for."""
    slots = own_slots(summary)
    told = slots.get(FOLDED_FOR)
    if "reason" not in slots:
        return ""
    if not told:
        return f" (its measure was {NOT_RECORDED})"
    measure = told[1][place]
    return f" ({measure:.2f} alike)" if isinstance(measure, float) else f" (last used {measure[:10]})"


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
