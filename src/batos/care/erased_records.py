"""The change that erases missions, conversations, memories, slots, methods, and words in all other objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.agency.records import staged_effects
from batos.care.erasure_plan import ErasurePlan
from batos.history import mission_traces, undone_missions
from batos.history.mission_traces import Keeping
from batos.history.undone_missions import Act
from batos.image import conversation_files, ownership, roots
from batos.image.ownership import SLOT_USERS
from batos.image.records import SLOT_TRUST, MissionRecord
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.memory.records import memory_records
from batos.missions import counters
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import Refused
from batos.records import erased_words, methods, word_redaction
from batos.records.erased_words import MARK

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
        word_redaction.drop_keys(root, plan.words)
        spared = _others_records(root, plan.owned)
        mine = [oid for oid in holding if oid not in spared and not _is_of_other(root, oid, plan.owned)]
        done.objects = word_redaction.redact_objects(root, mine, plan.words, at)
    return done


def _others_records(root: Root, user: str | None) -> set[bytes]:
    """Return the oids of the records about the missions of other users than the one whose things go."""
    found: set[bytes] = set()
    for name, record in roots.records_of(root):
        if user not in (None, record.brief.value["user"]):
            kept: list[Any] = [*record, root[roots.UNDONE].get(name), *staged_effects.list_all(root, name)]
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
        done.effects += [f"{each['effect']} ({each['grant']})" for each in staged_effects.list_lasting(root, name)]
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
    for slot in set(own_slots(record.thought)) - {"mission"}:
        delattr(record.thought, slot)
    why = Refused(f"erased by {act.by}", remedy="Nothing brings it back.").as_dict()
    record.status.erase(why)
    for effect in staged_effects.list_all(root, name):
        effect.update(payload={}, outcome=None)
    for approval in root[roots.APPROVALS].values():
        asked_for: Collection[str] = approval.candidate["provenance"].get("missions", ())
        if asked_for and set(asked_for) <= set(act.missions):
            word_redaction.withdraw_approval(root, approval, act.at)


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
        names = [each["name"] for each in conversation_files.files_of(conversation) if each["sha256"] in gone]
        if names:
            conversation_files.drop(conversation, names)
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
