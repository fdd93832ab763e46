"""The changes of an erasure: in the records of the image, and in the calls of the journal."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from BTrees.OOBTree import OOBTree
from persistent import Persistent

from batos.agency.records import effect_records
from batos.care.erasure_plan import ErasurePlan, holds
from batos.history import as_of, dreams, mission_traces, undone_missions
from batos.history.dreams import DREAMS
from batos.history.mission_traces import Keeping
from batos.history.undone_missions import Act
from batos.image import attached_files, ownership, roots
from batos.image.image import LivingImage
from batos.image.ownership import SLOT_USERS
from batos.image.records import SLOT_TRUST, MissionRecord
from batos.image.roots import JournalRoot, Root, connection_of
from batos.inference.journal import Entries, Entry, MissionLog
from batos.memory.document_store import DocumentStore
from batos.memory.records import memory_records
from batos.methods.generation import generation_limits
from batos.missions import counters
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import NotFound, Refused
from batos.records import erased_words, methods, redaction
from batos.records.erased_words import MARK, ErasedWords

#: The fields of a brief that an erased mission keeps: none of them has words of its request.
_KEPT: Final = ("id", "user", "conversation", "persona", "effort", "priority", "origin", "ancestor", "in_reply_to")


@dataclass(slots=True)
class ErasedRecords:
    """The records that a change erased, by kind, for people; `effects` happened, and their words are elsewhere."""

    missions: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    files: int = 0
    objects: int = 0
    effects: list[str] = field(default_factory=list)


def erase_records(
    root: Root, plan: ErasurePlan, store: DocumentStore, holding: Iterable[bytes], told: tuple[str, str]
) -> ErasedRecords:
    """Erase what a plan says, within a change of the image and while nothing else changes what is remembered.

    `holding` are the oids of objects whose words are taken out; `told` are who wants it, and when.
    """
    by, at = told
    done = ErasedRecords()
    memories = _memories_of(root, plan)
    done.memories = [f"{name} {own_slots(root[roots.DOCUMENTS][name])['title']}" for name in memories]
    digests = {each["sha256"] for name in plan.missions for each in _attachments(root, name)}
    _erase_missions(
        root, plan, Act(plan.target, by, at, Keeping(methods=plan.is_guests), _newest_first(root, plan)), done
    )
    counters.erase_reasons(root, plan.missions)
    store.forget_in(root, [name for name in memories if name in root[roots.DOCUMENTS]])
    for name in plan.conversations:
        del root[roots.CONVERSATIONS][name]
        done.conversations.append(name)
    for holder, slot in plan.slots:
        erase_slot(root, holder, slot)
    if not plan.is_guests:
        done.methods += _erase_methods(root, plan, by, at)
    done.files = _drop_files(root, digests)
    if plan.everywhere:
        redaction.drop_keys(root, plan.words)
        spared = _others_records(root, plan.owned)
        mine = [oid for oid in holding if oid not in spared and not _is_of_other(root, oid, plan.owned)]
        done.objects = redaction.redact_objects(root, mine, plan.words, at)
        effect_records.withdraw_unasked(root, at)
    return done


def _others_records(root: Root, user: str | None) -> set[bytes]:
    """Return the oids of the records about the missions of other users than the one whose things go."""
    found: set[bytes] = set()
    for name, record in roots.records_of(root):
        if user not in (None, record.brief.value["user"]):
            kept: list[Any] = [*record, root[roots.UNDONE].get(name), *effect_records.list_all_effects(root, name)]
            found |= {each._p_oid for each in kept if each is not None}
    return found


def _is_of_other(root: Root, oid: bytes, user: str | None) -> bool:
    found = roots.connection_of(root).get(oid)
    return user is not None and isinstance(found, UvmObject) and ownership.owner(root, found) not in (None, user)


def _attachments(root: Root, mission: str) -> Sequence[Any]:
    found: Sequence[Any] = roots.mission_record(root, mission).brief.value.get("attachments", ())
    return found


def _memories_of(root: Root, plan: ErasurePlan) -> list[str]:
    """Return the memories that go: those of the plan, and all that is remembered of its missions."""
    of_missions = (
        own_slots(each)["name"] for name in plan.missions for each in memory_records.documents_of_mission(root, name)
    )
    return [name for name in dict.fromkeys((*plan.memories, *of_missions)) if name in root[roots.DOCUMENTS]]


def _newest_first(root: Root, plan: ErasurePlan) -> tuple[str, ...]:
    named = [(name, roots.mission_record(root, name)) for name in plan.missions]
    return tuple(name for name, _ in sorted(named, key=mission_traces.commit_of, reverse=True))


# -- missions


def _erase_missions(root: Root, plan: ErasurePlan, act: Act, done: ErasedRecords) -> None:
    for name in act.missions:
        record = roots.mission_record(root, name)
        done.effects += [f"{each['effect']} ({each['grant']})" for each in effect_records.list_lasting(root, name)]
        if record.status.word == "done":
            undone_missions.undo(root, name, act, ())
        kept = root[roots.UNDONE].pop(name, None)
        made = [] if kept is None else [(each[0], each[1]) for each in kept["methods"]]
        for key, revision in made:
            if _erase_revision(root, key, revision, plan, act):
                done.methods.append(f"{key} revision {revision}")
        _empty(root, name, record, act, whole=bool(plan.conversations))
        done.missions.append(name)


def _empty(root: Root, name: str, record: MissionRecord, act: Act, *, whole: bool) -> None:
    """Take the words out of a mission's own records; its effects keep their fingerprints."""
    brief = record.brief
    kept: dict[str, Any] = {
        key: brief.value[key] for key in _KEPT if key in brief.value and not (whole and key == "conversation")
    }
    brief.erase({**kept, "text": erased_words.MARK, "attachments": []})
    root[roots.OUTCOMES].pop(name, None)
    root[roots.ENTROPY].pop(name, None)
    for slot in set(own_slots(record.thought)) - {"mission"}:
        delattr(record.thought, slot)
    why = Refused(f"erased by {act.by}", remedy="Nothing brings it back.").as_dict()
    record.status.erase(why)
    for effect in effect_records.list_all_effects(root, name):
        effect.update(payload={}, outcome=None, asked_by="")
    for approval in root[roots.APPROVALS].values():
        asked_for: Collection[str] = approval.candidate["provenance"].get("missions", ())
        if asked_for and set(asked_for) <= set(act.missions):
            redaction.withdraw_approval(root, approval, act.at)
    effect_records.withdraw_unasked(root, act.at, name)


# -- methods


def _erase_revision(root: Root, key: str, revision: int, plan: ErasurePlan, act: Act) -> bool:
    lineage = root[roots.METHODS].get(key)
    if lineage is None or lineage.active == revision or revision not in lineage.revisions:
        return False
    methods.erase(lineage.revisions[revision], plan.words, act.at)
    return True


def _erase_methods(root: Root, plan: ErasurePlan, by: str, at: str) -> list[str]:
    """Erase the methods whose source has the words; one that is active is retired, and another may be made."""
    found: list[str] = []
    for lineage in root[roots.METHODS].values() if plan.words else ():
        for number, method in lineage.revisions.items():
            if not plan.words.are_in_value({**method.as_dict(), "provenance": {}}):
                continue
            if lineage.active == number:
                methods.retire(lineage, "its words were erased", at, by)
                methods.lift_bar(lineage)
            methods.erase(method, plan.words, at)
            found.append(f"{methods.name_of(root, lineage)} revision {number}")
    return found


# -- files


def _drop_files(root: Root, digests: Collection[str]) -> int:
    """Drop the files that no brief names any more, also from their conversations; return how many went."""
    still = {
        each["sha256"] for _, record in roots.records_of(root) for each in record.brief.value.get("attachments", ())
    }
    gone = {each for each in digests if each not in still and each in root[roots.ATTACHMENTS]}
    for digest in gone:
        del root[roots.ATTACHMENTS][digest]
    for conversation in root[roots.CONVERSATIONS].values() if gone else ():
        names = [each["name"] for each in attached_files.files_of(conversation) if each["sha256"] in gone]
        if names:
            attached_files.drop_from_conversation(conversation, names)
    return len(gone)


# -- erasure of one slot of an object: its value goes, and so do the copies of former values that missions recorded


def erase_slot(root: Root, holder: UvmObject, slot: str) -> None:
    """Take a slot out of an object, for every user, and its former values out of what missions recorded."""
    slots = own_slots(holder)
    for kept in (SLOT_USERS, SLOT_TRUST):
        if slot in (slots.get(kept) or {}):
            setattr(holder, kept, {name: value for name, value in slots[kept].items() if name != slot})
    if slot in slots:
        delattr(holder, slot)
    oid = reference(holder)
    for _, record in roots.records_of(root):
        provenance = own_slots(record.thought).get("provenance") or {}
        if any(_is_of(each, oid, slot) for each in provenance.get("written", ())):
            written = [_without_value(each) if _is_of(each, oid, slot) else each for each in provenance["written"]]
            record.thought.provenance = {**provenance, "written": written}
    for undone in root[roots.UNDONE].values():
        if any(_is_of(each, oid, slot) for each in undone["slots"]):
            undone["slots"] = [each for each in undone["slots"] if not _is_of(each, oid, slot)]


def _is_of(told: Mapping[str, object], oid: str, slot: str) -> bool:
    return (told["oid"], told["slot"]) == (oid, slot)


def _without_value(told: Mapping[str, object]) -> dict[str, object]:
    """Return the record of a write with a mark in the place of the former value."""
    return {**told, "former": MARK if told["had"] else None}


#: Keys of a note that are about a state, or the round of a generation, and have no words.
_PLAIN: Final = frozenset({"state", "at", "attempt", "round", "ended"})


def find_logs(root: JournalRoot, missions: Collection[str]) -> set[str]:
    """Return the logs of missions: their own, and those of the generations that they began."""
    logs = _logs_of(root)
    found = set(missions)
    for name in missions:
        for note in logs[name].notes if name in logs else ():
            told = note.get(generation_limits.LEARNED)
            if told and told.get("began") and told.get("generation"):
                found.add(str(told["generation"]))
    return found


def list_others(root: JournalRoot, user: str | None) -> set[str]:
    """Return the dreams and questions to the past of other users than this one (None: none of them are)."""
    if user is None:
        return set()
    found = {name for name, dream in root.get(DREAMS, {}).items() if dream["user"] != user}
    return found | {name for name, brief in _list_asked(root) if brief["user"] != user}


def find_asked_by(root: JournalRoot, clients: Collection[str]) -> set[str]:
    """Return the logs of questions to copies of the mind that some clients asked."""
    return {name for name, brief in _list_asked(root) if brief.get("origin", {}).get("client") in clients}


def _list_asked(root: JournalRoot) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the log of each question to a copy of the mind, with its brief."""
    for name, log in _logs_of(root).items():
        asked = [note[as_of.NOTE]["report"] for note in log.notes if as_of.NOTE in note]
        if asked:
            yield name, json.loads(asked[-1])["brief"]


def list_generations(root: JournalRoot) -> set[str]:
    """Return the logs of methods that were generated: they are no user's."""
    return {name for name in _logs_of(root) if not name.startswith("m-")}


def erase_calls(root: JournalRoot, logs: Collection[str], quotes: ErasedWords, spared: Collection[str]) -> int:
    """Erase all calls and notes of some logs, and the calls of others that have the words; return how many calls went.

    The logs of `spared` are left as they are: their missions have the words of their own. Within a change.
    """
    erased = 0
    for name, log in _logs_of(root).items():
        if name in logs:
            erased += log.erase_words()
            log.replace_notes({key: note[key] for key in _PLAIN if key in note} for note in log.notes)
            if name.startswith("m-"):  # another mission may go on with a generation
                log.close()
        elif name not in spared and quotes:
            erased += log.erase_words(partial(_has, words=quotes))
            _redact_notes(log, quotes)
    return erased


def _has(entry: Entry, *, words: ErasedWords) -> bool:
    try:
        return words.are_in_bytes(zlib.decompress(entry.bodies))
    except zlib.error:
        return False


def _redact_notes(log: MissionLog, words: ErasedWords) -> None:
    if any(holds(note, words) for note in log.notes):
        log.replace_notes([words.redact_value(dict(note)) for note in log.notes])


def drop_dreams(root: JournalRoot, missions: Collection[str], words: ErasedWords, user: str | None) -> list[str]:
    """Drop dreams that are named, and a user's that have the words; return their names. Within a change."""
    none: OOBTree[str, Any] = OOBTree()
    kept = root.get(DREAMS, none)
    gone = [
        name
        for name, dream in kept.items()
        if name in missions or (user in (None, dream["user"]) and holds(dream, words))
    ]
    for name in gone:
        del kept[name]
    return gone


def redact_rest(root: JournalRoot, words: ErasedWords, spared: Collection[str], at: str) -> int:
    """Take words out of whatever else the journal has; return how many objects were changed. Within a change."""
    others = {oid for name in spared for oid in _records_of(root, name)}
    holding = [oid for oid in redaction.find_holding(root, words) if oid not in others]
    return redaction.redact_objects(
        root, [each for each in holding if not isinstance(connection_of(root).get(each), Entry)], words, at
    )


def _logs_of(root: JournalRoot) -> OOBTree[str, MissionLog]:
    none: OOBTree[str, MissionLog] = OOBTree()
    return root.get("missions", none)


def _records_of(root: JournalRoot, name: str) -> Iterator[bytes]:
    """Yield the oids of the records of a log, and of a dream of that name, but for its calls."""
    kept: list[Any] = []
    if (log := _logs_of(root).get(name)) is not None:
        kept += [log, *log.notes]
    kept += [root["dreams"][name]] if name in root.get(DREAMS, ()) else []
    yield from (each._p_oid for each in kept if isinstance(each, Persistent) and each._p_oid is not None)


def find_own_log(image: LivingImage, journal: Entries, named: str, user: str | None) -> tuple[str, str] | None:
    """Return the id of a mission of which only the journal knows, and what was asked: a dream, a question to the past.

    None: there is none of this user's.
    """
    try:
        dream = dreams.read(image, named, user)
    except NotFound:
        asked = as_of.find_question(journal, named, user)
        return None if asked is None else (asked["id"], asked["brief"]["text"])
    return dream["mission"], dream["brief"]["text"]
