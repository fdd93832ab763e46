"""The reasons for a mission's answer: calls, evidence, methods, writes and commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from batos.agency.lookup import find_object
from batos.history.why_memories import explain_memory
from batos.history.why_methods import explain_method
from batos.history.why_nodes import Asking, make_call, make_commit, make_node
from batos.image import ownership, roots
from batos.image.ids import serial_of
from batos.image.views.past import published_at
from batos.inference.journal import Record, is_embedding
from batos.objects.prototype import own_slots
from batos.protocol.image_documents import WhyNode
from batos.protocol.mission_documents import ProvenanceDocument, RanDocument
from batos.records import methods

_ANOTHERS: Final = "a mission of another user"


def explain_mission(asking: Asking, mission: str) -> WhyNode:
    """Return a mission with what its answer came from; one that this user may not see is named as another's."""
    record = asking.record(mission)
    if record is None:
        return make_node("mission", _ANOTHERS)
    brief, slots = record.brief.value, own_slots(record.thought)
    text = f"{brief['text']} ({record.status.word}, asked by {brief['user']})"
    because: list[WhyNode] = []
    if asking.is_new(mission) and record.status.word != "undone":
        known: ProvenanceDocument = slots.get("provenance") or ProvenanceDocument()
        because = [
            *make_calls(asking, mission),
            *explain_recalled(asking, brief, known),
            *_explain_methods(asking, known),
            *_explain_writes(asking, known),
            *_list_commits(asking, mission, known),
        ]
    return make_node("mission", text, because, mission, record.brief.accepted_at)


def records_of(asking: Asking, mission: str) -> list[Record]:
    """Return the calls of a mission that wrote something, in order."""
    return [each for each in asking.journal.sound([mission]) if not is_embedding(each)]


def make_calls(asking: Asking, mission: str) -> Iterator[WhyNode]:
    """Yield each call of a mission; the last word is that of the last one. Erased ones are told in one line."""
    for each in records_of(asking, mission):
        yield make_call(each)
    if erased := asking.journal.count_erased([mission]):
        yield make_node("call", f"{erased} of its calls, whose words are erased; their digests are in the journal")


def explain_recalled(asking: Asking, brief: Mapping[str, Any], known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield what the models were shown: files, memories, earlier turns and their summaries."""
    for each in known.get("recalled", ()):
        yield explain_evidence(asking, brief, each)


def explain_evidence(asking: Asking, brief: Mapping[str, Any], told: Mapping[str, Any]) -> WhyNode:
    """Return one thing that the models were shown, and where it came from."""
    if "mission" in told:
        return make_node("turn", f"turn {told['turn']} of the conversation", [explain_mission(asking, told["mission"])])
    if "turns" in told:
        first, last = told["turns"]
        return make_node("summary", f"a summary of the turns {first} to {last}", ref=brief.get("conversation") or "")
    if "memory" in told:
        document = asking.root[roots.DOCUMENTS].get(told["memory"])
        if document is None:
            return make_node("memory", f"{told['name']}, which is forgotten", ref=told["memory"])
        found = explain_memory(asking, document)
        return {**found, "text": f"{found['text']}; found by {told['why']}"} if told.get("why") else found
    text = f"{told['name']}, characters {told['start']} to {told['start'] + told['length']}, came with the question"
    return make_node("file", text, ref=told["sha256"])


def _explain_methods(asking: Asking, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield each method and interpreted intent that ran, once."""
    ran: dict[tuple[str, str], RanDocument] = {}
    for each in known.get("methods", ()):
        ran.setdefault((each["oid"], each["selector"]), each)
    for (oid, selector), each_ran in ran.items():
        holder = find_object(asking.root, oid, ownership.NOBODY)
        name = f"{roots.name_of_object(asking.root, holder)}.{selector}"
        lineage = methods.lineage_of(asking.root, holder, selector)
        if lineage is None or "intent" in each_ran.get("as", ""):
            yield make_node("intent", f"{name}, as the codex words it", ref=name)
        else:
            yield explain_method(asking, lineage, explain_mission)


def _explain_writes(asking: Asking, known: ProvenanceDocument) -> Iterator[WhyNode]:
    for each in known.get("written", ()):
        yield make_node("write", f"its methods wrote {each['oid']}.{each['slot']}", ref=f"{each['oid']}.{each['slot']}")


def _list_commits(asking: Asking, mission: str, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield the commit that the mission read, its own, and the one that published it."""
    record = roots.mission_record(asking.root, mission)
    if "read_at" in known:
        yield make_commit(serial_of(known["read_at"]), "read the mind")
    if "answer" in own_slots(record.thought):
        yield make_commit(record.thought._p_serial, "committed the thought")
    published = published_at(asking.root, record.status)
    if published is not None:
        yield make_commit(published, "published what it contributes")
