"""Undone missions: all that one left in the image is taken out, kept as plain data, and can be brought back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from persistent.mapping import PersistentMapping

from batos.agency import payloads
from batos.agency.records import effect_records
from batos.conversations import conversations
from batos.history import mission_traces
from batos.history.mission_traces import Keeping, Traces, find_traces, revision_before, slot_name
from batos.image import roots
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.memory.records import memories_set_aside, memory_records, memory_standings
from batos.memory.records.memory_records import ChunkText, NewDocument
from batos.objects.prototype import own_slots
from batos.protocol.errors import Refused
from batos.protocol.memory_documents import UndoLine
from batos.protocol.mission_documents import ErrorDocument
from batos.records import approvals, memory_lineage, methods, tools
from batos.records.memory_lineage import Withdrawal

#: The remedy for a mission that cannot be undone, by its status.
_REMEDIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("queued", "running", "waiting", "paused"), "`batos cancel {mission}` stops it without a trace."),
    **dict.fromkeys(
        ("failed", "cancelled", "parked"),
        "It left nothing to take out but methods that it had made: `batos method list`.",
    ),
    "undone": "`batos redo {mission}` brings it back.",
}
#: The slots that an undone thought keeps: whose it is.
_OWN: Final = frozenset({"mission"})


@dataclass(frozen=True, slots=True)
class Act:
    """An undoing: who asked for it and when, what stays, and its missions, the newest first; `origin` was named."""

    origin: str
    by: str
    at: str
    keeping: Keeping
    missions: tuple[str, ...]

    def why(self, mission: str) -> Withdrawal:
        """Return what the history of a method says of it."""
        return Withdrawal(self.at, self.by, f"undone with {mission}")


def check_undoable(root: Root, mission: str) -> None:
    """Check that a mission can be undone. Raises: Refused: it is not done; the remedy tells what to do instead."""
    word = roots.mission_record(root, mission).status.word
    if word == "undone" and find_act(root, mission) is None:
        raise erasure_refusal(mission)
    if word != "done":
        remedy = _REMEDIES[word].format(mission=mission)
        raise Refused(
            f"{mission} is {word}, and only a mission that is done can be undone", field="mission", remedy=remedy
        )


def erasure_refusal(mission: str) -> Refused:
    """Return the refusal of a mission that is undone, and of which nothing is kept."""
    return Refused(f"{mission} is erased", field="mission", remedy="Nothing brings it back. Ask again.")


def describe(root: Root, mission: str, act: Act, because: str) -> UndoLine:
    """Return the line of a mission that an act takes out."""
    record = roots.mission_record(root, mission)
    traces = find_traces(root, mission, act.missions, act.keeping)
    documents = root[roots.DOCUMENTS]
    return {
        "mission": mission,
        "text": str(record.brief.value["text"]) if record.brief.value["user"] == _owner(root, act) else "",
        "because": because,
        "memories": [f"{name} {own_slots(documents[name])['title']}" for name in traces.memories],
        "methods": [
            f"{methods.name_of(root, root[roots.METHODS][key])} revision {revision}" for key, revision in traces.methods
        ],
        "tools": traces.tools,
        "slots": [slot_name(root, each["oid"], each["slot"]) for each in traces.slots],
        "approvals": []
        if act.keeping.methods
        else [_approval_line(root, each) for each in approvals.list_made_for(root, mission, act.missions)],
        "effects": [_effect_line(each) for each in effect_records.list_lasting(root, mission)],
        "turn": _turn(root, record, mission)[1],
    }


def undo(root: Root, mission: str, act: Act, builds_on: Sequence[str]) -> None:
    """Take a mission out, within a change of the image and while nothing else changes what is remembered.

    `builds_on` are missions of the same act, without which this one does not come back.
    """
    record = roots.mission_record(root, mission)
    user = record.brief.value["user"]
    asking = approvals.list_made_for(root, mission, act.missions)
    traces = find_traces(root, mission, act.missions, act.keeping)
    conversation, position = _turn(root, record, mission)
    kept = {
        "origin": act.origin, "by": act.by, "at": act.at, "missions": act.missions, "builds_on": tuple(builds_on),
        "keeping": act.keeping.names(), "conversation": conversation, "position": position,
        "unremembered": mission in root[roots.UNREMEMBERED],
        "memories": [_draw_memory(root, name) for name in traces.memories],
        "wishes": [] if act.keeping.methods else _take_wishes(root, mission),
        "approvals": [] if act.keeping.methods else approvals.withdraw(root, asking, act.at, act.why(mission).reason),
        "tools": list(memory_lineage.withdraw_wishes(root, traces.tools)),
        "methods": list(_retire(root, mission, traces, act)),
        "slots": mission_traces.take_slots_back(root, user, traces.slots),
        "effects": effect_records.withdraw(root, mission, act.at),
    }  # fmt: skip
    DocumentStore.forget_exactly(root, traces.memories)
    root[roots.UNREMEMBERED].discard(mission)
    if position:
        conversations.take_out(root[roots.CONVERSATIONS][conversation], position)
    _note_uses(root, mission, record, again=False)
    kept["thought"] = _empty_thought(record)
    root[roots.UNDONE][mission] = PersistentMapping(kept)
    what = f"undone with {act.origin}" if mission != act.origin else f"undone by {act.by}"
    reason = Refused(what, remedy=f"`batos redo {mission}` brings it back.").as_dict()
    _become(root, record, "undone", act.at, reason)


def redo(root: Root, mission: str, by: str, at: str) -> list[str]:
    """Bring a mission back, whose memories are added in the same change; return what was changed since and stays so."""
    record, kept = roots.mission_record(root, mission), root[roots.UNDONE].pop(mission)
    left: list[str] = []
    for slot, value in kept["thought"].items():
        setattr(record.thought, slot, value)
    for each in kept["memories"]:
        _restore_standing(root, each, at)
    why = Withdrawal(at, by, f"undone with {mission}")
    left += memory_lineage.bring_back(root, kept["methods"], kept["tools"], why)
    for wish in kept["wishes"]:
        tools.fold_wishes(root, mission, wish)
    approvals.ask_again(root, kept.get("approvals", ()), why.reason)
    left += effect_records.restage(root, kept["effects"])
    left += mission_traces.put_slots_back(root, record.brief.value["user"], kept["slots"])
    if kept["position"]:
        conversations.put_back(root[roots.CONVERSATIONS][kept["conversation"]], kept["position"], mission)
    if kept["unremembered"]:
        root[roots.UNREMEMBERED].insert(mission)
    _note_uses(root, mission, record, again=True)
    _become(root, record, "done", at, None)
    return left


def find_act(root: Root, mission: str) -> PersistentMapping[str, Any] | None:
    """Return what is kept of an undone mission; None if it is not undone."""
    found: PersistentMapping[str, Any] | None = root[roots.UNDONE].get(mission)
    return found


def documents_of(root: Root, mission: str) -> Iterator[NewDocument]:
    """Yield the memories of an undone mission, as they are added again."""
    for each in root[roots.UNDONE][mission]["memories"]:
        chunks = tuple(ChunkText(*chunk) for chunk in each["document"]["chunks"])
        yield NewDocument(**{**each["document"], "chunks": chunks})


# -- within


def _owner(root: Root, act: Act) -> str:
    """Return the user of the mission that was named: words of another user are told to nobody."""
    return str(roots.mission_record(root, act.origin).brief.value["user"])


def _turn(root: Root, record: MissionRecord, mission: str) -> tuple[str, int]:
    """Return the conversation of a mission, and the position of its turn; ("", 0) if it is no turn."""
    name = record.brief.value.get("conversation") or ""
    conversation = root[roots.CONVERSATIONS].get(name)
    position = 0 if conversation is None else conversations.position_of(conversation, mission)
    return (name, position) if position else ("", 0)


def _effect_line(effect: effect_records.Effect) -> str:
    what = payloads.describe(effect["operation"], effect["payload"])
    return f"{effect['grant']}: {what} ({effect['state']} as {effect['effect']})"


def _approval_line(root: Root, name: str) -> str:
    asked = root[roots.APPROVALS][name]
    return f"{name} {asked.object}.{asked.candidate['selector']}"


def _draw_memory(root: Root, name: str) -> dict[str, object]:
    """Return a document as plain data, with its pin, its standing and the wording that it was edited from."""
    document = asdict(memory_records.copy_of(root, name))
    return {
        "document": {**document, "chunks": [tuple(each) for each in document["chunks"]]},
        "pinned_at": memory_standings.pinned_at(root, name),
        "standing": memory_standings.standing_of(root, name),
        "edits": tuple(own_slots(root[roots.DOCUMENTS][name]).get(memory_lineage.EDITS, ())),
    }


def _restore_standing(root: Root, kept: Mapping[str, Any], at: str) -> None:
    name = kept["document"]["name"]
    if name not in root[roots.DOCUMENTS]:
        return
    if kept["pinned_at"]:
        memory_standings.pin(root, name, kept["pinned_at"])
    if kept["edits"]:
        setattr(root[roots.DOCUMENTS][name], memory_lineage.EDITS, kept["edits"])
    if kept["standing"] in ("edited", "retracted"):
        memory_standings.set_standing(root, name, kept["standing"])


def _take_wishes(root: Root, mission: str) -> list[Any]:
    """Take out the methods that are still to be made for a mission, and return them."""
    found = [each for each in tools.list_wishes(root) if each["mission"] == mission]
    tools.drop_wish(root, found)
    return found


def _retire(root: Root, mission: str, traces: Traces, act: Act) -> Iterator[tuple[str, int, bool, int]]:
    """Retire methods, the newest revision first; where one was active, the one before it is active again."""
    newest_first = sorted(traces.methods, key=lambda each: (each[0], -each[1]))
    for key, revision, was_active in memory_lineage.retire_all(root, newest_first, act.why(mission)):
        lineage = root[roots.METHODS][key]
        former = revision_before(lineage, revision) if was_active and lineage.intent is not None else 0
        if former:
            methods.restore(root, lineage, former, act.at, act.by)
        elif was_active:
            methods.lift_bar(lineage)  # it did nothing wrong: the same coder may make another
        yield key, revision, was_active, former


def _note_uses(root: Root, mission: str, record: MissionRecord, *, again: bool) -> None:
    """Note in the ledger of each method that ran that the mission of this use is undone, or brought back."""
    ran = [told for kind, told in own_slots(record.thought).get("contributions", ()) if kind == "method"]
    for told in ran:
        lineage = root[roots.METHODS].get(f"{told['holder']} {told['selector']}")
        if lineage is not None:
            methods.note_undone(lineage, mission, told["revision"], control=told["control"], again=again)


def _empty_thought(record: MissionRecord) -> dict[str, object]:
    """Take all slots but its mission's name out of a thought, and return them; a retraction's mark stays too."""
    stay: Collection[str] = _OWN | {memories_set_aside.RETRACTED}
    slots = {slot: value for slot, value in own_slots(record.thought).items() if slot not in stay}
    for slot in slots:
        delattr(record.thought, slot)
    return slots


def _become(root: Root, record: MissionRecord, word: Any, at: str, reason: ErrorDocument | None) -> None:
    roots.move_tally(root, record.brief.value["id"], record.status.word, word)
    record.status.become(word, at, reason)
