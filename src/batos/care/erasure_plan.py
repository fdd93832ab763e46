"""The plan of an erasure: what a name or some words mean, what holds them, and what builds on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from persistent import Persistent

from batos.agency.lookup import by_name
from batos.conversations import conversations
from batos.history.mission_traces import Keeping, find_dependents, slot_name
from batos.image import ids, ownership, roots
from batos.image.guards import protected_slots
from batos.image.records import OPEN, MissionRecord
from batos.image.roots import Root
from batos.memory.document_store import going_with
from batos.memory.records import memory_places, memory_records, memory_wordings
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import BriefError, NotFound, Refused
from batos.protocol.server_documents import RemainingPlace
from batos.records import gold_items, tools
from batos.records.erased_words import ErasedWords, passages_of

#: The kinds of things that are erased.
TargetKind: TypeAlias = Literal["words", "mission", "conversation", "memory", "object"]
#: Makes of some texts what searches for them.
FindWords: TypeAlias = Callable[[Iterable[str]], ErasedWords]
#: The fewest characters of words that are erased wherever they stand.
LEAST: Final = 6
#: The reason why a mission that has not ended is waited for.
_OPEN: Final = "has not ended, and may still read what would go"
_ID: Final = re.compile(r"(?P<kind>[mcd])-[0-9A-HJKMNP-TV-Z]{4,26}\Z|last(-\d+)?\Z", re.IGNORECASE)


@dataclass(slots=True)
class ErasurePlan:
    """A plan: `missions` and `memories` by name, each with the reason why it goes; `slots` as (object, slot).

    `words` are looked for in calls, methods and lines of logs, and `everywhere` says in all else too. `dependents` are
    the missions that go only with `--cascade`, and `owned` is whose things go (None: everybody's). `logs` are missions
    of which only the journal knows, `generations` the logs of methods that the missions had made, `clients` those whose
    questions are about what goes. A plan that `is_guests` touches nothing that is shared.
    """

    target: str
    kind: TargetKind
    owned: str | None
    words: ErasedWords
    everywhere: bool = False
    missions: dict[str, str] = field(default_factory=dict)
    dependents: dict[str, str] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    generations: set[str] = field(default_factory=set)
    is_guests: bool = False
    conversations: list[str] = field(default_factory=list)
    clients: set[str] = field(default_factory=set)
    slots: list[tuple[UvmObject, str]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Test if nothing of the image as it is now goes."""
        return not (self.missions or self.memories or self.conversations or self.slots)


def plan_erasure(
    root: Root, target: str, kind: TargetKind, user: str | None, find: FindWords = ErasedWords, *, cascade: bool
) -> ErasurePlan:
    """Return the plan of an erasure, within a snapshot; `find` makes what searches for words.

    Raises: NotFound: there is nothing of this name. Refused: other missions build on what goes.
    """
    plan = _PLANNERS[kind](root, target, user, find)
    _add_dependents(root, plan)
    if plan.dependents and not cascade:
        raise _dependence_error(plan)
    plan.missions |= plan.dependents
    plan.clients = _clients_of(root, plan)
    plan.missions |= _find_asked_about(root, plan)
    plan.generations = {each for name in plan.missions for each in _generations_of(root, name)}
    return plan


def kind_of(root: Root, target: str, user: str | None, *, as_words: bool = False) -> TargetKind:
    """Return what a target is: an id, the source of a memory, an object or a slot; else it is words."""
    if as_words:
        return "words"
    found = _ID.match(target)
    if found is not None:
        kinds: Mapping[str | None, TargetKind] = {"m": "mission", "c": "conversation", "d": "memory", None: "mission"}
        return kinds[found["kind"] and found["kind"].lower()]
    if next(memory_places.names_with_source(root, target, user), None) is not None:
        return "memory"
    return "object" if _find_slots(root, target, user) is not None else "words"


# -- words


def _plan_words(root: Root, target: str, user: str | None, find: FindWords) -> ErasurePlan:
    if len(target.strip()) < LEAST:
        what = f"words have at least {LEAST} characters: these would be erased wherever they stand"
        raise BriefError(what, field="target", remedy="Give more of them, or an id.")
    words = find([target])
    if any(map(words.are_in, root[roots.GENESIS].get("codex_texts", {}).values())):
        remedy = "Change it there and run `batos genesis`; then erase the words."
        raise Refused("the codex has these words", field="target", remedy=remedy)
    plan = ErasurePlan(target, "words", user, words, everywhere=True)
    for name, record in roots.records_of(root):
        undone = root[roots.UNDONE].get(name)
        if user in (None, record.brief.value["user"]) and (holds(undone, words) or _mission_has(root, record, words)):
            plan.missions[name] = "it has the words"
    for name, document in root[roots.DOCUMENTS].items():
        slots = own_slots(document)
        if user in (None, slots["user"]) and _memory_has(root, document, words):
            plan.memories[name] = str(slots["title"])
    return plan


def _mission_has(root: Root, record: MissionRecord, words: ErasedWords) -> bool:
    parts = (record.brief.value, record.status.reason, record.status.report, own_slots(record.thought))
    if any(holds(each, words) for each in parts):
        return True
    files = root[roots.ATTACHMENTS]
    digests = (each["sha256"] for each in record.brief.value.get("attachments", ()))
    return any(words.are_in_bytes(files[each].read()) for each in digests if each in files)


def _memory_has(root: Root, document: UvmObject, words: ErasedWords) -> bool:
    chunks = memory_records.chunks_of(root, document)
    return holds(own_slots(document), words) or any(holds(own_slots(each), words) for each in chunks)


def holds(value: object, words: ErasedWords, depth: int = 0) -> bool:
    """Test if a value has the words, or a part of it that the database keeps as a record of its own."""
    if isinstance(value, UvmObject) or depth > 8:
        return False
    if isinstance(value, Persistent):
        return holds(_state_of(value), words, depth + 1)
    if isinstance(value, Mapping):
        return any(holds(each, words, depth + 1) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds(each, words, depth + 1) for each in value)
    return words.are_in_value(value)


def _state_of(value: Any) -> Any:
    value._p_activate()
    return dict(value.items()) if hasattr(value, "items") else value.__getstate__()


# -- missions and conversations


def _plan_mission(root: Root, target: str, user: str | None, find: FindWords) -> ErasurePlan:
    name = _resolve_mission(root, target, user)
    record = roots.mission_record(root, name)
    return ErasurePlan(name, "mission", user, find(_list_said(record)), missions={name: "it was named"})


def _resolve_mission(root: Root, target: str, user: str | None) -> str:
    own: Callable[[str], bool] | None = None if user is None else lambda each: ownership.is_asked_by(root, [each], user)
    meant = own if ids.back(target) is None else lambda each: _is_asked_by(root, each, user)
    name = ids.find_id(root[roots.MISSIONS], target, meant)
    if roots.find_record(root, name) is None or (own is not None and not own(name)):
        raise ownership.no_mission(target, user, "target")
    return name


def _list_said(record: MissionRecord) -> set[str]:
    """Return the passages of what a person said in a mission: those of an answer may be anybody's phrases."""
    brief = record.brief.value
    message = brief.get("message") or {}
    texts = [brief["text"], *(each for each in message.get("arguments", ()) if isinstance(each, str))]
    return {passage for text in texts for passage in passages_of(text)}


def _is_asked_by(root: Root, mission: str, user: str | None) -> bool:
    """Test if a person asked a mission: this user, or any if none is named."""
    record = roots.mission_record(root, mission)
    return not ownership.is_own_work(record) and user in (None, record.brief.value["user"])


def _plan_conversation(root: Root, target: str, user: str | None, find: FindWords) -> ErasurePlan:
    kept = root[roots.CONVERSATIONS]
    own = None if user is None else lambda each: bool(own_slots(kept[each])["user"] == user)
    name = ids.complete_id(kept, target, own)
    conversation = conversations.own_conversation(root, name, user)
    plan = ErasurePlan(name, "conversation", user, find(()), conversations=[name])
    said: set[str] = set()
    for mission, record in roots.records_of(root):
        if record.brief.value.get("conversation") == name:
            plan.missions[mission] = f"it is of {name}"
            said |= _list_said(record)
    for memory, document in root[roots.DOCUMENTS].items():
        slots = own_slots(document)
        if slots["conversation"] == name and slots["user"] == own_slots(conversation)["user"]:
            plan.memories[memory] = str(slots["title"])
            if slots["kind"] == "turn":  # of another program's conversation; what is remembered of ours has answers
                said |= _passages_in(root, document)
    plan.words = find(said)
    return plan


# -- memories


def _plan_memory(root: Root, target: str, user: str | None, find: FindWords) -> ErasurePlan:
    found = memory_records.find_documents(root, target, user)
    passages = {each for document in found for each in _passages_in(root, document)}
    plan = ErasurePlan(target, "memory", user, find(passages))
    plan.memories = {own_slots(each)["name"]: str(own_slots(each)["title"]) for each in found}
    return plan


def _passages_in(root: Root, document: UvmObject) -> set[str]:
    texts = [str(own_slots(each)["text"]) for each in memory_records.chunks_of(root, document)]
    return {passage for text in texts for passage in passages_of(text)}


# -- objects


def _plan_object(root: Root, target: str, user: str | None, find: FindWords) -> ErasurePlan:
    slots = _find_slots(root, target, user)
    if not slots:
        remedy = "Name a slot of it (OBJECT.SLOT), a mission, a conversation or a memory."
        raise Refused(f"{target} has no slot of its own that may go", field="target", remedy=remedy)
    texts = {each for holder, slot in slots for each in _texts_in(own_slots(holder)[slot])}
    passages = {passage for text in texts for passage in passages_of(text)}
    return ErasurePlan(target, "object", user, find(passages), slots=slots)


def _find_slots(root: Root, target: str, user: str | None) -> list[tuple[UvmObject, str]] | None:
    """Return the slots that a name means: all of an object, or one; None if there is no such object.

    Slots that the codex declares, or that the kernel keeps, are left out. Raises: Refused: the one slot is such.
    """
    found = by_name(root, target, user)
    if found is not None:
        protected = protected_slots(found)
        slots = [each for each, value in own_slots(found).items() if not isinstance(value, Behaviour)]
        return [(found, each) for each in slots if each not in protected]
    name, dot, slot = target.rpartition(".")
    holder = by_name(root, name, user) if dot else None
    if holder is None or slot not in own_slots(holder):
        return None
    if slot in protected_slots(holder) or isinstance(own_slots(holder)[slot], Behaviour):
        remedy = "Change the codex, or `batos method` for a method; erase words of it by giving them as text."
        raise Refused(f"{target} is declared by the codex, or kept by the kernel", field="target", remedy=remedy)
    return [(holder, slot)]


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts_in(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _texts_in(each)


_PLANNERS: Final[Mapping[TargetKind, Callable[[Root, str, str | None, FindWords], ErasurePlan]]] = {
    "words": _plan_words, "mission": _plan_mission, "conversation": _plan_conversation, "memory": _plan_memory,
    "object": _plan_object,
}  # fmt: skip


# -- what builds on it


def _generations_of(root: Root, mission: str) -> Iterator[str]:
    """Yield the logs of the methods that were generated for a mission and for no earlier one."""
    provenance = own_slots(roots.mission_record(root, mission).thought).get("provenance") or {}
    for told in provenance.get("generated", ()):
        if told.get("began") and told.get("generation"):
            yield str(told["generation"])


def _add_dependents(root: Root, plan: ErasurePlan) -> None:
    """Add the missions that build on those that go, and those whose answers quote a memory that goes.

    Where words are erased everywhere, whoever has them goes anyhow.
    """
    if plan.everywhere:
        return
    if plan.kind == "memory":
        plan.dependents |= _quoting(root, plan.memories, plan.words)
    for name in (*plan.missions, *plan.dependents):
        if roots.mission_record(root, name).status.word == "done":
            for other, (_, how) in find_dependents(root, name, Keeping()).items():
                if other not in plan.missions:
                    plan.dependents.setdefault(other, how)


def _quoting(root: Root, names: Collection[str], words: ErasedWords) -> dict[str, str]:
    found = {
        str(own_slots(root[roots.DOCUMENTS][each])["mission"]) for each in memory_wordings.answers_quoting(root, names)
    }
    for name, record in roots.records_of(root):
        slots = own_slots(record.thought)
        shown = {each.get("memory") for each in (slots.get("provenance") or {}).get("recalled", ())}
        if not shown.isdisjoint(names) and holds({**slots}, words):
            found.add(name)
    return dict.fromkeys(sorted(found), "its answer quotes it")


def _clients_of(root: Root, plan: ErasurePlan) -> set[str]:
    """Return the clients that made or asked items of what goes, or made methods for it."""
    of_missions = (memory_records.documents_of_mission(root, each) for each in plan.missions)
    names = [*plan.memories, *(own_slots(each)["name"] for several in of_missions for each in several)]
    going = [*names, *going_with(root, names)]
    kept = (root[roots.DOCUMENTS].get(each) for each in going)
    answered = {
        str(own_slots(each)["mission"]) for each in kept if each is not None and own_slots(each)["kind"] == "mission"
    }
    clients = {gold_items.client_of(each) for each in (*going, *answered, *plan.missions)}
    return clients | {tools.client_of(each) for each in plan.missions}


def _find_asked_about(root: Root, plan: ErasurePlan) -> dict[str, str]:
    """Return the missions by which a model made items of what goes, or methods: nobody else asked for them."""
    origins = {name: each.brief.value.get("origin", {}) for name, each in roots.records_of(root)}
    found = (name for name, origin in origins.items() if origin.get("client") in plan.clients)
    return {name: "a model was asked about it" for name in found if name not in plan.missions}


def list_waiting(root: Root) -> list[RemainingPlace]:
    """Return the missions that have not ended: no history is cut that one of them may still read."""
    return [
        RemainingPlace(place=each, what=_OPEN, remedy=f"Wait for it, or `batos cancel {each}`.")
        for each in root[roots.UNFOLDED]
        if _is_open(root, each)
    ]


def refuse_open(root: Root) -> None:
    """Refuse an erasure while a mission has not ended. Raises: Refused: one has not."""
    if waiting := list_waiting(root):
        first, names = waiting[0], [each["place"] for each in waiting]
        raise Refused(f"{first['place']} {_OPEN}", field="target", remedy=first["remedy"]).add_faults(names)


def _is_open(root: Root, mission: str) -> bool:
    record = roots.find_record(root, mission)
    return record is not None and record.status.word in OPEN and not tools.rests(record)


def _dependence_error(plan: ErasurePlan) -> Refused:
    lines = [f"{name}: {how}" for name, how in plan.dependents.items()]
    what = f"{len(lines)} other mission{'s build' if len(lines) > 1 else ' builds'} on {plan.target}"
    remedy = "Add --cascade: these are erased too. Add --dry-run to see all that goes."
    return Refused(what, field="target", remedy=remedy).add_faults(lines)


def slot_lines(root: Root, plan: ErasurePlan) -> list[str]:
    """Return the names of the slots that go."""
    return [slot_name(root, reference(holder), slot) for holder, slot in plan.slots]


def find_missing(target: str) -> NotFound:
    """Make the error for words that nothing has."""
    return NotFound(f"nothing has {target!r}", field="target", remedy="`batos recall` finds what is remembered.")
