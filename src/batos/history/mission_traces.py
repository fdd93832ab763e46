"""The traces of a mission in the image: memories, methods, tools, and the changes of slots as plain data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from batos.agency.lookup import by_name
from batos.image import ownership, roots
from batos.image.ids import serial_of
from batos.image.records import OPEN, Lineage, MissionRecord
from batos.image.roots import Root
from batos.memory.exchanges import unpack
from batos.memory.records.memory_records import BY_METHOD
from batos.methods.execution.write_buffer import (
    DELETED,
    BufferedWrite,
    WriteBuffer,
    data_of,
    replace_leaves,
    trust_of,
    with_references,
)
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import Refused
from batos.protocol.evidence_documents import WrittenSlot
from batos.records import memory_lineage, tool_declarations
from batos.records.methods import name_of

#: Kinds of traces that can stay while a mission is undone.
KINDS: Final = ("methods", "memories", "slots")


@dataclass(frozen=True, slots=True)
class Keeping:
    """The kinds of traces that stay although their mission is undone."""

    methods: bool = False
    memories: bool = False
    slots: bool = False

    def names(self) -> list[str]:
        """Return the names of the kinds that stay."""
        return [name for name in KINDS if getattr(self, name)]


@dataclass(slots=True)
class Traces:
    """The traces of one mission.

    `memories` are names of documents, `methods` keys of lineages with a revision, `tools` selectors of tools that it
    wished for, `slots` the first change of each slot that its methods wrote: {oid, slot, had, former, trust?}.
    """

    memories: list[str] = field(default_factory=list)
    methods: list[tuple[str, int]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    slots: list[WrittenSlot] = field(default_factory=list)


def find_traces(root: Root, mission: str, also: Collection[str], keeping: Keeping) -> Traces:
    """Return the traces of a mission that is undone together with others; those of kinds that stay are left out.

    A method goes if it was made for no mission but these, a memory unless a method of another mission gave it too, a
    tool unless another mission wished for it too. Reads all documents and lineages: for a rare verb, in a thread.
    """
    gone = {mission, *also}
    slots = own_slots(roots.mission_record(root, mission).thought)
    found = Traces()
    if not keeping.memories:
        found.memories = _memories(root, mission, gone)
    if not keeping.methods:
        made = (key for key, missions in _list_made_methods(root) if mission in missions and missions <= gone)
        found.methods = list(dict.fromkeys(made))
        found.tools = _tools(root, slots, gone)
    if not keeping.slots:
        found.slots = first_writes(slots)
    return found


def _tools(root: Root, thought: Mapping[str, object], gone: Collection[str]) -> list[str]:
    """Return the tools that are still only declared, as this thought wished for them and no mission that stays did."""
    wished = [each for each in tool_declarations.list_wishes(thought) if tool_declarations.is_declared(root, *each)]
    stays = {
        each
        for name, record in (roots.records_of(root) if wished else ())
        if name not in gone and _is_answered(record)
        for each in tool_declarations.list_wishes(own_slots(record.thought))
    }
    return [selector for selector, intent in wished if (selector, intent) not in stays]


def _memories(root: Root, mission: str, gone: Collection[str]) -> list[str]:
    documents = {name: own_slots(each) for name, each in root[roots.DOCUMENTS].items()}
    own = {name: each for name, each in documents.items() if each["mission"] == mission and each["kind"] != "summary"}
    given = {each["sha256"] for each in own.values() if each["source"].startswith(BY_METHOD)}
    others = _given_by_others(root, gone) if given else frozenset[str]()
    return [
        name
        for name, each in own.items()
        if not (each["source"].startswith(BY_METHOD) and each["sha256"] in others)
    ]  # fmt: skip


def _given_by_others(root: Root, gone: Collection[str]) -> frozenset[str]:
    """Return the digests of the texts that methods of other missions gave to be remembered."""
    packed = (
        own_slots(record.thought).get("indexed_documents", "[]")
        for name, record in roots.records_of(root)
        if name not in gone
    )
    return frozenset(each.digest for one in packed for each in unpack(one))


def _list_made_methods(root: Root) -> Iterator[tuple[tuple[str, int], frozenset[str]]]:
    """Yield each revision that was made for missions and is not retired, and those of the missions that stand.

    A revision that a mission of its own made comes twice: with those that wished for it, and with that one alone.
    """
    for key, lineage in root[roots.METHODS].items():
        for number, method in lineage.revisions.items():
            if number in lineage.retired and lineage.active != number:
                continue
            for named in (method.provenance.get("missions", ()), (method.provenance.get("mission", ""),)):
                missions = frozenset(each for each in named if each and each not in root[roots.UNDONE])
                if missions:
                    yield (key, number), missions


def first_writes(thought: Mapping[str, Any]) -> list[WrittenSlot]:
    """Return the first change of each slot that a mission's methods wrote: it has what stood there before."""
    first: dict[tuple[str, str], WrittenSlot] = {}
    for each in (thought.get("provenance") or {}).get("written", ()):
        first.setdefault((each["oid"], each["slot"]), each)
    return list(first.values())


def _list_written(record: MissionRecord) -> set[tuple[str, str]]:
    provenance = own_slots(record.thought).get("provenance") or {}
    return {(each["oid"], each["slot"]) for each in provenance.get("written", ())}


def find_dependents(root: Root, mission: str, keeping: Keeping) -> dict[str, tuple[str, str]]:
    """Return the missions that build on one, with the mission that each builds on and how; oldest commit first.

    A mission builds on another if it replies to it, was shown its turn or a memory of it, ran a method that was made
    for it alone, or read or wrote a slot that it had written. A mission whose answer is committed counts, also if that
    is not published yet. Reads every mission once.
    """
    origin = roots.mission_record(root, mission)
    done = [(name, record) for name, record in roots.records_of(root) if _is_answered(record)]
    later = sorted((each for each in done if commit_of(each) > commit_of((mission, origin))), key=commit_of)
    methods = [] if keeping.methods else list(_list_made_methods(root))
    found: dict[str, tuple[str, str]] = {}
    gone = {mission: origin}
    for name, record in later:
        because = _find_dependence(root, name, record, gone, methods, keeping)
        if because is not None:
            found[name] = because
            gone[name] = record
    return found


def is_being_published(record: MissionRecord) -> bool:
    """Test if the answer of a mission is committed, and what it contributes is not folded in yet."""
    return record.status.word in OPEN and "answer" in own_slots(record.thought)


def _is_answered(record: MissionRecord) -> bool:
    return record.status.word == "done" or is_being_published(record)


def commit_of(named: tuple[str, MissionRecord]) -> tuple[bytes, str]:
    """Return what sorts missions by the commits of their thoughts."""
    name, record = named
    if record.status.tid is None and is_being_published(record):
        return bytes(record.thought._p_serial), name
    return serial_of(record.status.tid or "tid:0x0"), name


def _find_dependence(
    root: Root,
    name: str,
    record: MissionRecord,
    gone: Mapping[str, MissionRecord],
    methods: list[tuple[tuple[str, int], frozenset[str]]],
    keeping: Keeping,
) -> tuple[str, str] | None:
    """Return on which of the missions that go this one builds, and how; None if on none."""
    shown = memory_lineage.list_builds_on(root, name, record.thought, memories=not keeping.memories)
    for each in shown:
        if each in gone:
            return each, f"it was shown what came of {each}"
    ran = set(memory_lineage.list_methods_run(own_slots(record.thought).get("provenance") or {}))
    made = {key: missions for key, missions in methods if missions <= gone.keys()}
    for key, missions in made.items():
        if key in ran:
            name = name_of(root, root[roots.METHODS][key[0]])
            return max(missions), f"it ran {name}, which was made for {max(missions)}"
    if keeping.slots:
        return None
    user, own = record.brief.value["user"], _list_written(record)
    read = {(each["oid"], each["slot"]) for each in (own_slots(record.thought).get("provenance") or {}).get("read", ())}
    for other, earlier in gone.items():
        if earlier.brief.value["user"] == user:
            before = _list_written(earlier)
            for oid, slot in own & before:
                return other, f"it wrote {slot_name(root, oid, slot)}, as {other} did before"
            for oid, slot in read & before:
                return other, f"it read {slot_name(root, oid, slot)}, which {other} wrote"
    return None


def slot_name(root: Root, oid: str, slot: str) -> str:
    """Return the name of a slot for people."""
    holder = by_name(root, oid)
    return f"{oid if holder is None else roots.name_of_object(root, holder)}.{slot}"


def revision_before(lineage: Lineage, revision: int) -> int:
    """Return the revision that was active when this one was installed, if it could be active again; else 0.

    A revision that is retired itself leads to the one before it.
    """
    while revision:
        came = (each for each in lineage.history.values() if each["revision"] == revision)
        revision = next((int(each["former"]) for each in came if each["event"] == "installed"), 0)
        if revision and revision not in lineage.retired:
            return revision
    return 0


#: The trust class of a value that nothing less trusted went into: it is recorded nowhere.
_USUAL: Final = "model"


def value_of(holder: UvmObject, slot: str, user: str) -> tuple[bool, object]:
    """Return whether an object has a slot for a user, and its value as plain data with references for objects."""
    value = ownership.slot_for(own_slots(holder), slot, user)
    return (False, None) if value is ownership.ABSENT else (True, plain_value(value))


def former_value(change: WrittenSlot) -> tuple[bool, object]:
    """Return whether there was a slot before a change, and its value."""
    return change["had"], change["former"] if change["had"] else None


def draw_slots(root: Root, user: str, changes: Iterable[WrittenSlot]) -> Iterator[WrittenSlot]:
    """Yield changes of slots with what these have now: {oid, slot, had, former, has, value, trust}.

    A slot of an object that is gone is left out.
    """
    for each in changes:
        holder = by_name(root, each["oid"])
        if holder is not None:
            has, value = value_of(holder, each["slot"], user)
            trust = trust_of(own_slots(holder), each["slot"])
            bare = WrittenSlot(oid=each["oid"], slot=each["slot"], had=each["had"], former=each["former"])
            yield {**bare, "has": has, "value": value, "trust": trust}


def give_slots(root: Root, user: str, changes: Iterable[WrittenSlot]) -> None:
    """Set slots to the values that changes led to, as far as their objects are there."""
    buffer = WriteBuffer(user=user)
    for each in changes:
        holder = by_name(root, each["oid"])
        if holder is not None:
            value = live_value(root, each["value"]) if each["has"] else DELETED
            buffer.write(holder, {each["slot"]: BufferedWrite(value, each["trust"])})
    buffer.merge_down()


def take_slots_back(root: Root, user: str, changes: Iterable[WrittenSlot]) -> list[WrittenSlot]:
    """Set slots to the values that they had before a mission of this user; return the changes, to put them back."""
    several = list(changes)
    taken = list(draw_slots(root, user, several))
    before = [each.copy() for each in several]
    for each in before:
        each.update({"has": each["had"], "value": each["former"], "trust": each.get("trust", _USUAL)})
    give_slots(root, user, before)
    return taken


def put_slots_back(root: Root, user: str, taken: Iterable[WrittenSlot]) -> list[str]:
    """Set slots to the values again that a mission had left; return the names of those that were changed since."""
    left: list[str] = []
    same: list[WrittenSlot] = []
    for each in taken:
        holder = by_name(root, each["oid"])
        if holder is not None and value_of(holder, each["slot"], user) == former_value(each):
            same.append(each)
        else:
            left.append(slot_name(root, each["oid"], each["slot"]))
    give_slots(root, user, same)
    return left


def plain_value(value: object) -> Any:
    """Return a slot's value as plain data, with a reference in the place of each object."""
    return with_references(data_of(value, "a slot"))


def live_value(root: Root, data: object) -> Any:
    """Return plain data with the objects of a root in the place of references. Raises: Refused: one is gone."""

    def find(told: Mapping[str, str]) -> UvmObject:
        found = by_name(root, told["$ref"])
        if found is None:
            remedy = "Drop it (`batos dream drop`) and dream it again."
            raise Refused(f"{told['$ref']}, which the dream refers to, is gone", field="dream", remedy=remedy)
        return found

    return replace_leaves(data, find, lambda each: isinstance(each, Mapping) and each.keys() == {"$ref"})
