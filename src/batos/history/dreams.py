"""Dreams: missions of a copy of the mind, kept in the journal with the methods and all else that they would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.agency.lookup import by_name
from batos.agency.payloads import describe
from batos.agency.records import effect_records
from batos.history import mission_traces
from batos.history.mission_traces import first_writes
from batos.image import ids, roots
from batos.image.ids import serial_of, tid_text
from batos.image.image import LivingImage
from batos.image.readable import ReadableImage
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.inference import erasure_mark
from batos.objects.method import Intent
from batos.objects.prototype import own_slots, reference
from batos.protocol.errors import NotFound, Refused
from batos.protocol.evidence_documents import WrittenSlot
from batos.protocol.memory_documents import BaseAnswer, Dream, DreamDiff, DreamLine, MadeMethod, SlotDifference
from batos.protocol.method_documents import CandidateDocument
from batos.records import approvals, methods, tool_declarations, tools
from batos.records.approval_subjects import Candidate


def draw_method(root: Root, candidate: Candidate) -> dict[str, object]:
    """Return a candidate that was installed in a copy as plain data, with its revision, or with the object of a whole
    one.
    """
    made = tools.find_tool(root, candidate.selector) if candidate.methods else None
    revision = 0
    if not candidate.methods:
        lineage = methods.lineage_of(root, methods.find_holder(root, candidate.holder), candidate.selector)
        revision = 0 if lineage is None else len(lineage.revisions)
    return {
        "candidate": candidate.as_dict(),
        "revision": revision,
        "object": "" if made is None else reference(made),
    }


def draw_methods_asked_for(root: Root, mission: str) -> list[CandidateDocument]:
    """Return the candidates that a person would have been asked about for a mission, as plain data."""
    asked = (root[roots.APPROVALS][name] for name in approvals.list_made_for(root, mission, ()))
    return [{**each.candidate} for each in asked if not (each.candidate["forgets"] or each.candidate.get("effects"))]


def list_methods(root: Root, dream: Dream) -> list[MadeMethod]:
    """List the methods that a dream made, and what stands against each in the mind as it is now."""
    made = [(Candidate.from_dict(each["candidate"]), each["revision"]) for each in dream.get("made", ())]
    asked = [Candidate.from_dict(each) for each in dream.get("asks", ())]
    return [
        *(_line(root, each, _find_conflict(root, each, revision), asks=False) for each, revision in made),
        *(_line(root, each, _find_conflict(root, each, None), asks=True) for each in asked),
    ]


def _line(root: Root, candidate: Candidate, conflict: str, *, asks: bool) -> MadeMethod:
    try:
        holder = roots.name_of_object(root, methods.find_holder(root, candidate.holder))
    except NotFound:
        holder = candidate.holder
    name = candidate.selector if candidate.methods else f"{holder}.{candidate.selector}"
    return {"method": name, "source": candidate.source, "asks": asks, "conflict": conflict}


def _find_conflict(root: Root, candidate: Candidate, revision: int | None) -> str:
    """Return what has changed since the dream began; "" if nothing has. Without a revision only the intent counts."""
    if candidate.methods:
        intent = tools.absent(root, candidate.selector)
        is_declared = intent is not None and methods.digest_of(intent) == candidate.intent
        return "" if is_declared else "it is declared otherwise"
    try:
        holder = methods.find_holder(root, candidate.holder)
    except NotFound:
        return "the object is gone"
    lineage = methods.lineage_of(root, holder, candidate.selector)
    value = own_slots(holder).get(candidate.selector) if lineage is None else lineage.intent
    if not isinstance(value, Intent) or methods.digest_of(value) != candidate.intent:
        return "its intent is another"
    made = 0 if lineage is None else len(lineage.revisions)
    return "another method was made meanwhile" if revision is not None and made != revision - 1 else ""


def check_installable(root: Root, dream: Dream, at: str) -> None:
    """Check that each method of a dream may come into the mind. Raises: Refused: one may not.

    The guardian of today judges each once more, and a person's no stands.
    """
    for candidate in _candidates(dream):
        refused = [each for each in candidate.methods or (candidate,) if not each.verdict["accepted"]]
        if refused:
            what = f"the guardian of today refuses {refused[0].selector!r}"
            raise Refused(what, field=refused[0].selector, remedy="Drop the dream, and dream it again.")
        said = approvals.last_answer(root, candidate.holder, candidate.selector, candidate.digest, at)
        if said is not None and said.word == "rejected" and said.until > at:
            what = f"a person rejected exactly this method for {candidate.selector!r}"
            raise Refused(what, field=candidate.selector, remedy="Drop the dream, and dream it again.")
        for each in candidate.methods or (candidate,):
            methods.check(each)


def _candidates(dream: Dream) -> Iterator[Candidate]:
    for each in dream.get("made", ()):
        yield approvals.audit_again(Candidate.from_dict(each["candidate"]))


def install_methods(root: Root, dream: Dream, at: str) -> dict[str, str]:
    """Install the methods of a dream; return the references of the objects that it made, by those in the dream."""
    renamed: dict[str, str] = {}
    for candidate, each in zip(_candidates(dream), dream.get("made", ()), strict=True):
        if not candidate.methods:
            methods.install(root, candidate, at)
            continue
        tool_declarations.install_object(root, candidate, at)
        made = tools.find_tool(root, candidate.selector)
        if made is not None:
            renamed[each["object"]] = reference(made)
    return renamed


def rename(data: object, renamed: Mapping[str, str]) -> Any:
    """Return plain data with these references in the place of others.

    >>> rename({"oid": "oid:0x9", "of": ["oid:0x1"]}, {"oid:0x9": "oid:0x2"})
    {'oid': 'oid:0x2', 'of': ['oid:0x1']}
    """
    if isinstance(data, str):
        return renamed.get(data, data)
    if isinstance(data, Mapping):
        return {name: rename(value, renamed) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(rename(each, renamed) for each in data)
    return data


#: The key of the journal's root under which dreams stand: mission id -> PersistentMapping.
DREAMS: Final = "dreams"
#: Slots of a thought that are made anew where it is promoted.
_OWN: Final = frozenset({"mission"})


def draw(copy: LivingImage, mission: str, tid: bytes, made: Sequence[Candidate] = ()) -> Dream:
    """Return all that a mission of a copy of the mind did, as plain data; `tid` is the commit that was copied.

    `made` are the candidates that were installed in the copy.

    `writes` are the slots of other objects that it changed, with what stood there before; `reads` those that it read.
    """
    with copy.snapshot() as root:
        record = roots.mission_record(root, mission)
        brief, slots = dict(record.brief.value), own_slots(record.thought)
        files = {each["sha256"]: root[roots.ATTACHMENTS][each["sha256"]].read() for each in brief["attachments"]}
        return {
            "mission": mission,
            "user": brief["user"],
            "brief": brief,
            "accepted_at": record.brief.accepted_at,
            "files": files,
            "thought": _thought_of_the_mind({slot: value for slot, value in slots.items() if slot not in _OWN}, tid),
            "effects": [payload for kind, payload in slots.get("contributions", ()) if kind == effect_records.KIND],
            "writes": (writes := list(mission_traces.draw_slots(root, brief["user"], first_writes(slots)))),
            "reads": list(_reads(root, slots, brief["user"], writes)),
            "made": [draw_method(root, each) for each in made],
            "asks": draw_methods_asked_for(root, mission),
            "read_at": tid_text(tid),
            "state": "open",
        }


def _thought_of_the_mind(thought: dict[str, Any], tid: bytes) -> dict[str, object]:
    """Return the slots of a thought as of the commit that was copied: no other commit that the copy saw is known.

    Its effects on the world are left out: a dream holds no live capability.
    """
    return without_effects({**thought, "provenance": {**thought["provenance"], "read_at": tid_text(tid)}})


def without_effects(thought: Mapping[str, Any]) -> dict[str, object]:
    """Return the slots of a thought without its effects on the world."""
    kept = [each for each in thought.get("contributions", ()) if each[0] != effect_records.KIND]
    return {**thought, "contributions": kept} if "contributions" in thought else dict(thought)


def _reads(root: Root, thought: Mapping[str, Any], user: str, writes: Iterable[WrittenSlot]) -> Iterator[WrittenSlot]:
    """Yield each slot that a mission read and did not change, with what stands there."""
    changed = {(each["oid"], each["slot"]) for each in writes}
    for each in (thought.get("provenance") or {}).get("read", ()):
        holder = by_name(root, each["oid"])
        if holder is not None and (each["oid"], each["slot"]) not in changed:
            had, value = mission_traces.value_of(holder, each["slot"], user)
            yield {"oid": each["oid"], "slot": each["slot"], "had": had, "former": value, "value": value}


def store(journal: Any, dream: Dream) -> None:
    """Keep a dream in the journal's root, unless something was erased since the commit that it read."""
    if erasure_mark.is_behind(journal, serial_of(dream["read_at"]), for_change=True):
        return
    if DREAMS not in journal:
        journal[DREAMS] = OOBTree()
    journal[DREAMS][dream["mission"]] = PersistentMapping(dream)


def read(image: ReadableImage, named: str, user: str | None = None) -> Dream:
    """Return a dream by its mission's id, the beginning of it, `last` or `last-1`. Raises: NotFound."""
    with snapshot(image.journal_db) as journal:
        dreams = journal.get(DREAMS) or {}
        name = ids.find_id(dreams, named, lambda each: user in (None, dreams[each]["user"])) if dreams else named
        if name not in dreams or user not in (None, dreams[name]["user"]):
            raise NotFound(f"there is no dream {named!r}", field="dream", remedy="`batos dream list` lists them.")
        found = cast("Dream", dict(dreams[name]))
    with image.snapshot() as root:
        return _with_state(root, found)


def list_dreams(image: ReadableImage, most: int, user: str | None = None) -> list[DreamLine]:
    """Return a line for each of the newest dreams."""
    with snapshot(image.journal_db) as journal:
        dreams = journal.get(DREAMS) or {}
        found = [cast("Dream", dict(dreams[name])) for name in ids.newest_first(dreams)] if dreams else []
    mine = [each for each in found if user in (None, each["user"])][:most]
    with image.snapshot() as root:
        return [line_of(_with_state(root, each)) for each in mine]


def _with_state(root: Root, dream: Dream) -> Dream:
    """Return a dream whose mission is part of the mind as promoted, also if the process died before it was noted."""
    there = roots.MISSIONS in root and roots.find_record(root, dream["mission"]) is not None
    return {**dream, "state": "promoted"} if there else dream


def line_of(dream: Dream) -> DreamLine:
    """Return the line of a dream."""
    return {
        "dream": dream["mission"],
        "state": dream["state"],
        "at": dream["accepted_at"],
        "user": dream["user"],
        "text": dream["brief"]["text"],
        "writes": len(dream["writes"]),
    }


def find_differences(image: ReadableImage, dream: Dream) -> DreamDiff:
    """Return what a dream would change in the mind as it is now, and where both have changed the same."""
    thought = dream["thought"]
    with image.snapshot() as root:
        slots, read = _differences(root, dream, "writes"), _differences(root, dream, "reads")
        made = list_methods(root, dream)
        base = _find_base(root, dream)
    contributions = thought.get("contributions", ())
    return {
        **line_of(dream),
        "answer": thought.get("answer"),
        "base": base,
        "read_at": dream["read_at"],
        "slots": slots,
        "made": made,
        "methods": sorted({f"{each['holder']}.{each['selector']}" for each in thought["provenance"]["methods"]}),
        "tools": [each["selector"] for kind, each in contributions if kind == tool_declarations.KIND],
        "contributions": sorted({kind for kind, _ in contributions}),
        "effects": [
            f"{each['grant']}: {describe(each['operation'], each['payload'])}" for each in dream.get("effects", ())
        ],
        "conflicts": _conflicts([*slots, *read], made),
    }


def _find_base(root: Root, dream: Dream) -> BaseAnswer | None:
    """Return the newest answer that the mind itself gave this user to the question of a dream; None: it gave none."""
    missions = root[roots.MISSIONS]
    for name in ids.newest_first(missions):
        record = roots.mission_record(root, name)
        brief, slots = record.brief.value, own_slots(record.thought)
        is_same = brief["text"] == dream["brief"]["text"] and brief["user"] == dream["user"]
        if is_same and name != dream["mission"] and record.status.word == "done" and "answer" in slots:
            return {"mission": name, "answer": slots["answer"]}
    return None


def conflicts_in(root: Root, dream: Dream) -> list[str]:
    """List the slots that a dream changed or read, or made methods for, and that are not as it found them."""
    slots = [*_differences(root, dream, "writes"), *_differences(root, dream, "reads")]
    return _conflicts(slots, list_methods(root, dream))


def _differences(root: Root, dream: Dream, kind: Literal["writes", "reads"]) -> list[SlotDifference]:
    """Compare slots that a dream wrote or read with those of the mind, but for objects that it made itself."""
    new = {each["object"] for each in dream.get("made", ())}
    return [_difference(root, dream["user"], each) for each in dream.get(kind, ()) if each["oid"] not in new]


def _conflicts(slots: Iterable[SlotDifference], made: Iterable[MadeMethod]) -> list[str]:
    changed = [f"{each['object']}.{each['slot']}" for each in slots if each["conflict"]]
    return [*changed, *(each["method"] for each in made if each["conflict"])]


def _difference(root: Root, user: str, write: WrittenSlot) -> SlotDifference:
    holder = by_name(root, write["oid"])
    shown = SlotDifference(
        object=write["oid"], slot=write["slot"], before=write["former"], after=write["value"], conflict=""
    )
    if holder is None:
        return {**shown, "conflict": "the object is gone"}
    same = mission_traces.value_of(holder, write["slot"], user) == mission_traces.former_value(write)
    name = roots.name_of_object(root, holder)
    return {**shown, "object": name, "conflict": "" if same else "it was changed meanwhile"}
