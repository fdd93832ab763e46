"""The reasons for an answer, a memory and a method, as nodes of a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from batos.agency.lookup import find_object
from batos.image import ownership, roots
from batos.image.ids import iso, serial_of, tid_text
from batos.image.past import Writing, first_writing, moment_of, published_at
from batos.image.records import Lineage, MissionRecord
from batos.image.roots import Root
from batos.inference.journal import Entries, Record, is_embedding
from batos.memory.records import memory_claims, memory_records
from batos.memory.segmentation import clip_line
from batos.methods.lifecycle.method_reports import change_for, provenance_for
from batos.objects.method import Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.protocol.mission_documents import ProvenanceDocument, RanDocument
from batos.records import methods, tools
from batos.records.memory_lineage import EDITS

#: Longest text of a node, in characters.
_LONGEST: Final = 400
#: The characters of the end of a prompt that are told.
_END: Final = 160


@dataclass(frozen=True, slots=True)
class Asking:
    """The root and journal that reasons are read from, and the user who asks (None: anybody).

    `seen` are the things that the tree has already: each is told once, and named where it is met again.
    """

    root: Root
    journal: Entries
    user: str | None
    seen: set[str] = field(default_factory=set)

    def is_new(self, ref: str) -> bool:
        """Test if a thing is not in the tree yet, and take it in."""
        is_new = ref not in self.seen
        self.seen.add(ref)
        return is_new

    def record(self, mission: str) -> MissionRecord | None:
        """Return a mission; None: there is none that this user may see."""
        found = roots.find_record(self.root, mission)
        if found is None or (self.user is not None and not ownership.is_asked_by(self.root, [mission], self.user)):
            return None
        return found


def make_node(kind: str, text: str, because: Iterable[WhyNode] = (), ref: str = "", at: str = "") -> WhyNode:
    """Return a node, its text on one line."""
    node = WhyNode(kind=kind, text=clip_line(text, _LONGEST), because=[*because])
    if ref:
        node["ref"] = ref
    if at:
        node["at"] = at
    return node


def make_commit(written: Writing | bytes, what: str = "committed") -> WhyNode:
    """Return the node of a commit."""
    tid = written.tid if isinstance(written, Writing) else written
    node = make_node("commit", what, at=iso(moment_of(tid)))
    node["tid"] = tid_text(tid)
    return node


def make_call(record: Record) -> WhyNode:
    """Return the node of a call: its step, its model and tokens; its key names the journal's entry."""
    tokens = record.tokens
    spent = f", {tokens.get('prompt', '?')} -> {tokens.get('answer', '?')} tokens" if tokens else ""
    text = f"{record.path} by {record.model} ({record.digest[:12]}){spent}"
    state = "" if record.state == "done" else f", {record.state}"
    return make_node("call", text + state, [_prompt_of(record)], record.key, record.started)


def _prompt_of(record: Record) -> WhyNode:
    """Return the node of a call's prompt: its size and its end; `batos show MISSION --call PATH` prints all of it."""
    messages = record.request.get("messages", ())
    size = sum(len(each["content"]) for each in messages)
    end = " ".join(str(messages[-1]["content"]).split())[-_END:] if messages else ""
    return make_node("prompt", f"{size:,} characters, ending “{end}”", ref=f"{record.mission} {record.path}")


_ANOTHERS: Final = "a mission of another user"
#: The slots in which a memory names others, and how it came of them.
_MADE_OF: Final = (("of", "summarises"), ("depends_on", "holds only with"), (EDITS, "edited from"))


def explain_mission(asking: Asking, mission: str) -> WhyNode:
    """Return a mission with what its answer came from; one that this user may not see is named as another's."""
    record = asking.record(mission)
    if record is None:
        return make_node("mission", _ANOTHERS)
    brief, slots = record.brief.value, own_slots(record.thought)
    asker = f"the mind itself: {brief['origin']['client']}" if ownership.is_own_work(record) else brief["user"]
    text = f"{brief['text']} ({record.status.word}, asked by {asker})"
    because: list[WhyNode] = []
    if asking.is_new(mission) and record.status.word != "undone":
        known: ProvenanceDocument = slots.get("provenance") or ProvenanceDocument()
        because = [
            *_explain_options(brief),
            *_explain_wish(asking, record, known),
            *make_calls(asking, mission),
            *explain_recalled(asking, brief, known),
            *_explain_methods(asking, known),
            *_explain_writes(asking, known),
            *_list_commits(asking, mission, known),
        ]
    return make_node("mission", text, because, mission, record.brief.accepted_at)


def _explain_options(brief: Mapping[str, object]) -> Iterator[WhyNode]:
    """Yield what a question named for itself, in the place of what the codex has."""
    for name in ("model", "temperature", "seed", "system", "schema"):
        if name in brief:
            value = brief[name]
            yield make_node("option", f"{name} {value if isinstance(value, str) else json.dumps(value)}")


def _explain_wish(asking: Asking, record: MissionRecord, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield, for a mission that made a method, the one that did without it, what the audit found, and the method."""
    sender, message = tools.sender_in(record), record.brief.value.get("message")
    if not sender or message is None:
        return
    told = (known or (record.status.report or {}).get("provenance") or {}).get("generated", ())
    text = f"{message['selector']} was sent, and had no method"
    yield make_node("wish", text, [explain_mission(asking, sender)], sender)
    if record.status.reason is not None:
        yield make_node("reason", record.status.reason["message"], at=record.status.at)
    lineage = asking.root[roots.METHODS].get(f"{message['receiver']} {message['selector']}")
    if known and lineage is not None:
        name, made = record.brief.value["id"], lineage.revisions.values()
        yield from (_explain_audit(each) for each in made if each.provenance.get("mission") == name)
        yield explain_method(asking, lineage)
    elif told and "generation" in told[0]:
        yield from map(make_call, asking.journal.sound([told[0]["generation"]]))


def _explain_audit(method: Method) -> WhyNode:
    """Return the node of what guardian and rehearsal found of a method."""
    told, mutants = method.provenance, method.provenance.get("mutants") or {}
    word = "accepted" if method.verdict.get("accepted") else "refused"
    found = f"{word} by {method.verdict.get('policy', 'the guardian')} at draft {told.get('attempts', 1)}"
    killed = f"{mutants.get('killed', 0)} of {mutants.get('made', 0)}"
    return make_node("audit", f"{found}, {len(method.checks)} checks passed, which find {killed} broken variants")


def records_of(asking: Asking, mission: str) -> list[Record]:
    """Return the calls of a mission that wrote something, in order."""
    return [each for each in asking.journal.sound([mission]) if not is_embedding(each)]


def make_calls(asking: Asking, mission: str) -> Iterator[WhyNode]:
    """Yield each call of a mission; the last word is that of the last one. Erased ones are told in one line."""
    for each in records_of(asking, mission):
        yield make_call(each)
    if erased := asking.journal.count_erased([mission]):
        yield make_node("call", f"{erased} of its calls, whose words are erased; their digests are in the journal")


def explain_recalled(asking: Asking, brief: Mapping[str, object], known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield what the models were shown: files, memories, earlier turns and their summaries."""
    quotes = {row["name"]: f": {row['quote']}" for each in known.get("computed", ()) for row in each["rows"]}
    for each in known.get("recalled", ()):
        yield explain_evidence(asking, brief, each, quotes.get(each["name"], "") if "name" in each else "")


def explain_evidence(asking: Asking, brief: Mapping[str, Any], told: Mapping[str, Any], quote: str = "") -> WhyNode:
    """Return one thing that the models were shown, and where it came from; `quote`: of figures, behind their source."""
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
    if told.get("trust") == "tool":
        return make_node("figures", f"{told['name']}, counted from the mind's own records for this question{quote}")
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
            yield explain_method(asking, lineage)


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


# -- memories


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


# -- methods


def explain_method(asking: Asking, lineage: Lineage) -> WhyNode:
    """Return the method of a slot with the calls that wrote it, and the missions that it was made for."""
    name = methods.name_of(asking.root, lineage)
    number = lineage.active or (lineage.revisions.maxKey() if lineage.revisions else 0)
    stands = f"revision {number}{'' if lineage.active else ', out of use'}" if number else "no method yet"
    is_new = asking.is_new(name)
    because = list(_explain_revision(asking, lineage, number)) if is_new and number else []
    return make_node("method", f"{name}: {stands}", because, name)


def _explain_revision(asking: Asking, lineage: Lineage, number: int) -> Iterator[WhyNode]:
    method = lineage.revisions[number]
    told = provenance_for(asking.root, method.provenance, asking.user)
    yield make_node("intent", method.intent or (lineage.intent.text if lineage.intent else ""))
    if told.get("by"):
        yield make_node("person", f"redefined by {told['by']}", at=told.get("at", ""))
    for each in asking.journal.sound([told["generation"]]) if told.get("generation") else ():
        yield make_call(each)
    for mission in (*method.provenance.get("missions", ()), method.provenance.get("mission", "")):
        if mission:
            yield explain_mission(asking, mission)
    if told.get("approved_by"):
        yield make_node(
            "approval",
            f"approved by {told['approved_by']}",
            ref=told.get("approval", ""),
            at=told.get("approved_at", ""),
        )
    for number_, change in reversed(list(lineage.history.items())):
        if change["revision"] == number and change["event"] == "installed":
            seen = change_for(lineage, change, asking.user)
            yield make_node("change", f"change {number_}: {seen['reason']} (by {seen['by']})", at=seen["at"])
            break
    yield make_commit(first_writing(asking.root, method), "installed")
