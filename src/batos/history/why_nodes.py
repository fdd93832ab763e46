"""Nodes of the trees that say what something came from, who asks, and the reasons for an effect and for a memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from batos.agency import granting
from batos.agency.records import effect_records
from batos.agency.records.effect_records import Effect
from batos.image import ownership, roots
from batos.image.ids import iso, tid_text
from batos.image.past import Writing, first_writing, moment_of
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.inference.journal import Entries, Record
from batos.memory.records import memory_archives, memory_claims, memory_records
from batos.memory.records.memories_set_aside import FOLDED_FOR, STANDS_FOR
from batos.memory.regions import ALIKE
from batos.memory.segmentation import clip_line
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.records import approvals
from batos.records.memory_lineage import EDITS

#: Longest text of a node, in characters.
_LONGEST: Final = 400
#: The words for a mission that the user may not see, and for what a record of an older version lacks.
ANOTHERS: Final = "a mission of another user"
NOT_RECORDED: Final = "not recorded by that version"
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


def make_outside(record: Record) -> WhyNode:
    """Return the node of a call to the world: its step, what was asked, and its state where it is not done."""
    if not record.request:
        return make_node("outside", f"{record.path}: its words are erased", ref=record.key, at=record.started)
    asked = ", ".join(f"{name} {value}" for name, value in sorted(record.request["asked"].items()))
    state = "" if record.state == "done" else f", {record.state}"
    text = f"{record.path}: {record.request['kind']} ({asked}){state}"
    return make_node("outside", text, _pages_of(record), record.key, record.started)


def _pages_of(record: Record) -> Iterator[WhyNode]:
    """Yield the node of a page that a call brought; `batos show MISSION --prompts` prints it as it was."""
    document = ((record.response or {}).get("value") or {}).get("document")
    if document is not None:
        size = f"{len(document['text']):,} characters of a page of {len(document['page']):,}"
        named = f"{document['title']}, read {document['at']}, {size}, SHA-256 {document['digest'][:12]}"
        yield make_node("page", named, ref=f"{record.mission} {record.path}", at=document["at"])


def _prompt_of(record: Record) -> WhyNode:
    """Return the node of a call's prompt: its size and its end; `batos show MISSION --call PATH` prints all of it."""
    messages = record.request.get("messages", ())
    size = sum(len(each["content"]) for each in messages)
    end = " ".join(str(messages[-1]["content"]).split())[-_END:] if messages else ""
    return make_node("prompt", f"{size:,} characters, ending “{end}”", ref=f"{record.mission} {record.path}")


def explain_reference(asking: Asking, mission: str, said: str = "") -> WhyNode:
    """Return a mission in a line, without what it came from."""
    record = asking.record(mission)
    if record is None:
        return make_node("mission", ANOTHERS)
    return make_node("mission", said + record.brief.value["text"], (), mission, record.brief.accepted_at)


#: The way in which an effect of a state is taken back; the others happened, or may have.
_UNDO: Final = {
    **dict.fromkeys(("asking", "staged"), "`batos undo {mission}` takes it back before it happens"),
    **dict.fromkeys(("failed", "not_done"), "it did not happen, and nothing is to be undone"),
    "withdrawn": "it was taken back before it happened; `batos redo {mission}` stages it again",
    "repeated": "it was not done a second time, and nothing is to be undone",
}
_LASTING: Final = "nothing takes it back, an undo of its mission neither: a person does, at {target}"


def explain_effect(asking: Asking, named: str) -> WhyNode:
    """Return an effect with what asked for it and allowed it, what went out, and what came of it.

    Raises: NotFound: there is none, or it is of another user's mission.
    """
    kept = asking.root.get(roots.EFFECTS)
    effect = None if kept is None else kept.get(named)
    if effect is None or asking.record(effect["mission"]) is None:
        raise NotFound(f"there is no effect {named!r}", field="what", remedy="`batos effects` lists them.")
    told = granting.effect_document(asking.root, effect)
    text = f"{told['what']} by {told['grant']}: {told['state']} ({told['attempts']} attempts)"
    return make_node("effect", text, _explain(asking, effect), told["effect"], told["at"])


def _explain(asking: Asking, effect: Effect) -> Iterator[WhyNode]:
    """Yield the reasons for an effect in the order in which they came about."""
    yield explain_reference(asking, effect["mission"])
    if "asked_by" not in effect:
        yield make_node("step", f"the step that asked for it was {NOT_RECORDED}")
    elif effect["payload"]:
        yield make_node("step", f"asked for by {effect['asked_by'] or 'the message that its mission is'}")
    yield _explain_grant(asking, effect)
    if effect["payload"]:
        yield make_node("sent", json.dumps(effect["payload"], ensure_ascii=False), ref=effect["key"])
    if effect["state"] == "repeated":
        first = effect["outcome"]["of"]
        yield make_node("equal", f"{first} of the same lineage did the same", ref=first)
    elif effect["outcome"]:
        yield make_node("returned", _tell_outcome(effect["outcome"]), at=effect["at"])
    capability = effect_records.find_capability_of(asking.root, effect)
    target = "its target" if capability is None else own_slots(capability)["target"]
    undo = _UNDO.get(effect["state"], _LASTING).format(mission=effect["mission"], target=target)
    yield make_node("undo", undo)


def _explain_grant(asking: Asking, effect: Effect) -> WhyNode:
    """Return the grant, who gave it, and who let the mission use it."""
    capability = effect_records.find_capability_of(asking.root, effect)
    record = asking.record(effect["mission"])
    user = "its asker" if record is None else record.brief.value["user"]
    asked = approvals.find_approval(asking.root, effect.get("approval", ""))
    yes = "and no other yes was wanted" if asked is None else f"and its question is {asked.word}"
    by = f" by {asked.by}" if asked is not None and asked.by else ""
    told = f"{user} named the grant with the mission, {yes}{by}"
    named = make_node("approval", told, ref="" if asked is None else asked.name)
    if capability is None:
        return make_node("grant", f"{effect['grant']}, which is revoked", [named], effect["grant"])
    slots = own_slots(capability)
    text = f"{slots['name']} allows {slots['kind']} {slots['target']} ({slots['sink']}), granted for {slots['user']}"
    return make_node("grant", text, [named], slots["name"], slots[effect_records.GRANTED_AT])


def _tell_outcome(outcome: Any) -> str:
    """Return what came back, or the fault, and who settled what was unknown."""
    told = {name: each["message"] if name == "error" else each for name, each in outcome.items()}
    return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in told.items())


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
