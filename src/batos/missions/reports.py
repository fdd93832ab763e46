"""Reports of missions and objects in the form of the contract: plain data for every door."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from batos.agency.lookup import by_name, find_object
from batos.genesis import graph, persona_models
from batos.genesis.codex.declarations import api_of
from batos.image import ids, ownership, roots
from batos.image.ids import tid_text
from batos.image.records import Brief, MissionRecord, Status
from batos.image.roots import Root
from batos.inference.cost import cost_of
from batos.inference.journal import Entries, Record, is_embedding, is_outside
from batos.memory.segmentation import clip_line
from batos.methods.generation import generation_limits
from batos.methods.lifecycle.method_reports import provenance_for
from batos.objects.method import Method
from batos.objects.mirror import Mirror, as_json
from batos.objects.prototype import UvmObject, delegation, own_slots, reference
from batos.protocol.errors import NotFound
from batos.protocol.evidence_documents import PromptDocument, PromptPart
from batos.protocol.image_documents import (
    CountersDocument,
    DeclaredMethod,
    InspectedDocument,
    MirroredObject,
    ProgressLine,
    RootNames,
    RunningLine,
    SampleDocument,
    ScreenDocument,
)
from batos.protocol.mission_documents import (
    LearningDocument,
    LearntDocument,
    MissionDocument,
    MissionLineDocument,
    ProvenanceDocument,
)
from batos.records import approvals, outcomes, redaction, tools

_ANSWERED = ("answer", "voices", "route", "cost", "states", "provenance")

#: The most characters of a question in a list, and the number of failures on a screen.
_LINE, _FAILURES = 80, 10


def mission_report(name: str, brief: Brief, status: Status, thought: UvmObject) -> MissionDocument:
    """Return one mission whole, with the fields of its status: a failure's reason or an answer."""
    slots = own_slots(thought)
    report = MissionDocument(
        id=name,
        status=status.word,
        brief=dict(brief.value),
        accepted_at=brief.accepted_at,
        trust={"brief": brief.trust},
        states=[],
    )
    if status.reason is not None:
        report["reason"] = status.reason
    if status.report is not None:
        report.update(
            cast("MissionDocument", {key: value for key, value in status.report.items() if value is not None})
        )
    if "answer" in slots:
        report.update(cast("MissionDocument", {key: slots[key] for key in _ANSWERED if key in slots}))
        report["trust"]["answer"], report["trust"]["lineage"] = slots["trust"], slots["lineage_trust"]
        report["tid"] = tid_text(thought._p_serial)
    return report


def with_outcomes(root: Root, found: MissionDocument) -> MissionDocument:
    """Add what people did with the answer of a mission, if anything."""
    told = outcomes.list_outcomes(root, found["id"])
    return {**found, "outcomes": told} if told else found


def mission_line(name: str, brief: Brief, status: Status) -> MissionLineDocument:
    """Return the line of a mission in a list."""
    return MissionLineDocument(
        id=name,
        status=status.word,
        at=status.at,
        accepted_at=brief.accepted_at,
        user=brief.value["user"],
        text=clip_line(brief.value["text"], _LINE),
    )


def running_line(root: Root, line: ProgressLine) -> RunningLine:
    """Add the user and the question to the line of a running mission."""
    brief = roots.mission_record(root, line["id"]).brief
    return {**line, "user": brief.value["user"], "text": clip_line(brief.value["text"], _LINE)}


def screen(root: Root, counted: CountersDocument, running: Iterable[ProgressLine], limit: int) -> ScreenDocument:
    """Return one screen of status.

    `counted` are the counters' snapshot, and `limit` is the number of missions that may wait.
    """
    return {
        "queue": {"waiting": roots.waiting_count(root), "limit": limit},
        "approvals": {"waiting": approvals.count_waiting(root)},
        "running": [running_line(root, each) for each in running],
        "missions": {word: count for word, count in sorted(root[roots.TALLY].items()) if count},
        "counters": counted["total"],
        "days": counted["days"],
        "vram": newest_samples(counted["vram"]),
        "failures": counted["failures"][:_FAILURES],
        "models": persona_models.acting_models(root),
        "forms": graph.acting_forms(root),
        "erasure": redaction.describe_erasure(root),
    }


def screen_of(root: Root, told: ScreenDocument, user: str) -> ScreenDocument:
    """Return a screen with the running and failed missions of one user only; its counts still cover all users."""
    failed = [each for each in told["failures"] if ownership.is_asked_by(root, [each.get("mission", "")], user)]
    return {**told, "running": [each for each in told["running"] if each["user"] == user], "failures": failed}


def newest_samples(samples: Iterable[SampleDocument]) -> list[SampleDocument]:
    """Return the newest sample of each runner, given samples from newest to oldest; a model is listed once.

    The runner may have ended since the time `at` of its sample.
    """
    found: list[SampleDocument] = []
    told: set[str] = set()
    for sample in samples:
        names = {str(sample["model"]), str(sample["runner"])}
        if not names & told:
            found.append(sample.copy())
        told |= names
    return found


def newest(root: Root) -> Iterator[tuple[str, MissionRecord]]:
    """Yield missions from newest to oldest; their ids have one length and sort by time."""
    missions = root[roots.MISSIONS]
    return ((name, roots.mission_record(root, name)) for name in ids.newest_first(missions))


def resolve_mission(root: Root, name: str, asker: str, user: str | None = None) -> str:
    """Return the id of a mission; `last` and `last-1` count back through what `asker` asked, not the mind for them.

    If `user` is given, only that user's missions are found.

    Raises: NotFound: there is no such mission. BriefError: the name is the beginning of several ids.
    """
    before = ids.back(name)
    if before is None:
        if user is None:
            return ids.complete_id(root[roots.MISSIONS], name)
        meant = ids.complete_id(root[roots.MISSIONS], name, lambda each: ownership.is_asked_by(root, [each], user))
        if not ownership.is_asked_by(root, [meant], user):
            raise ownership.no_mission(name, user)
        return meant
    own = (
        each for each, record in newest(root) if record.brief.value["user"] == asker and ownership.is_of_people(record)
    )
    found = next(islice(own, before, None), None)
    if found is None:
        have = "no mission yet" if before == 0 else f"no mission {name}: you asked fewer"
        raise NotFound(f"there is {have}", field="mission", remedy='Ask something: batos ask "..."')
    return found


def mission_lines(
    root: Root, most: int, status: str | None, user: str | None, without: Collection[str] = ()
) -> list[MissionLineDocument]:
    """Return a line for each of the newest missions, optionally only those with a status, or of a user.

    Those that came through the doors in `without` are left out.
    """
    listed = (each for each in newest(root) if ownership.door_of(each[1]) not in without)
    lines = (mission_line(name, record.brief, record.status) for name, record in listed)
    meant = (line for line in lines if status in (None, line["status"]) and user in (None, line["user"]))
    return list(islice(meant, most))


def with_cost(found: MissionDocument, journal: Entries) -> MissionDocument:
    """Add the cost of a mission so far, and the methods that were generated for it during and after its run.

    `cost.learning` {calls, tokens} is not part of the mission's own cost.
    """
    told = generation_limits.read_learnt(journal.notes(found["id"]))
    shown = found.copy()
    if "cost" in found:
        known = found.get("provenance", ProvenanceDocument())
        learnt = _with_after(known.get("generated", ()), [each for each in told if each.get("after")])
        cost = found["cost"].copy()
        if learnt:
            shown["provenance"] = {**known, "generated": learnt}
    else:
        learnt, cost = told, cost_of(journal.sound([found["id"]])).as_dict()
        shown["cost"] = cost
        if told:
            shown["provenance"] = ProvenanceDocument(generated=told)
    calls, tokens = sum(each.get("calls", 0) for each in learnt), sum(each.get("tokens", 0) for each in learnt)
    cost["learning"] = LearningDocument(calls=calls, tokens=tokens)
    shown["cost"] = cost
    return shown


def _with_after(generated: Iterable[LearntDocument], after: Sequence[LearntDocument]) -> list[LearntDocument]:
    """Merge a mission's accounts of generations with those of the generations that ran after its answer."""
    came = {(each["receiver"], each["selector"]): each for each in after}
    shown: list[LearntDocument] = []
    for each in generated:
        later = came.get((each["receiver"], each["selector"])) if each["outcome"] == tools.LATER else None
        shown.append(each.copy() if later is None else {**each, **later})
    return shown


def logs(found: MissionDocument) -> list[str]:
    """Return the journal's logs that a mission paid for: its own, and those of the generations that it began."""
    generated = found.get("provenance", ProvenanceDocument()).get("generated", ())
    return [found["id"], *dict.fromkeys(each["generation"] for each in generated if each.get("began"))]


def generated_methods(found: MissionDocument) -> dict[str, str]:
    """Return the name of the method that each generation of a mission was for, by the generation's id."""
    generated = found.get("provenance", ProvenanceDocument()).get("generated", ())
    return {each["generation"]: f"{each['receiver']}.{each['selector']}" for each in generated if "generation" in each}


def prompts_report(records: Sequence[Record], methods: Mapping[str, str]) -> list[PromptDocument]:
    """Return every call of a mission with the exact prompt that was sent; an embedding has an `input` instead.

    `methods` has the method that a generation was for, by the generation's id.
    """
    return [
        {
            "path": record.path,
            **(PromptPart(method=methods[record.mission]) if record.mission in methods else PromptPart()),
            "model": record.model,
            "digest": record.digest,
            "state": record.state,
            **_input_of(record),
            "messages": list(record.request.get("messages", ())),
            "format": record.request.get("format"),
            "options": record.request.get("options"),
            "response": record.response,
            "tokens": dict(record.tokens),
            "started": record.started,
            "ended": record.ended,
            "key": record.key,
        }
        for record in records
    ]


def _input_of(record: Record) -> PromptPart:
    if not record.request:
        return PromptPart(erased=True)
    if is_outside(record):
        return PromptPart(outside=dict(record.request))
    return PromptPart(input=record.request["input"]) if is_embedding(record) else PromptPart()


def root_names(root: Root) -> RootNames:
    """Return the names of the root's objects, of the declared objects, and the number of records in each tree.

    `declared` maps each object that the codex declares to its reference, or to None while it does not exist.
    """
    objects: dict[str, str] = {name: reference(root[name]) for name in roots.OBJECTS if name in root}
    declared = {name: None if made is None else reference(made) for name, made in tools.names(root).items()}
    return {
        "objects": objects,
        "declared": declared,
        "records": {name: len(root[name]) for name in roots.RECORDS if name in root},
    }


def inspect_object(root: Root, name: str, user: str = "") -> InspectedDocument:
    """Return an object by its name or reference, or one of its slots (`OBJECT.SLOT`, split at the last dot).

    If a user is named, values are as that user may see them. For an object that is declared but does not exist, return
    its API and the methods that it would have.

    Raises: NotFound: there is no such object or slot.
    """
    found = by_name(root, name, user or None)
    if found is not None:
        described = _with_names(root, Mirror(found).describe())
        slots = ownership.slots_for(own_slots(found), user)
        return InspectedDocument(
            object=name,
            oid=described["oid"],
            parents=described["parents"],
            lineage=described["lineage"],
            slots={slot: _value_for(root, value, user) for slot, value in sorted(slots.items())},
        )
    intent = tools.absent(root, name)
    if intent is not None:
        methods = [
            DeclaredMethod(selector=each.selector, signature=each.signature, text=each.text)
            for each in api_of(intent.text)[0]
        ]
        return {"object": name, "state": "declared, absent", "api": intent.text, "methods": methods}
    holder_name, dot, slot = name.rpartition(".")
    holder = by_name(root, holder_name, user or None) if dot else None
    if holder is None:
        holder = find_object(root, name, user or None)
    values = ((each, ownership.slot_for(own_slots(each), slot, user)) for each in delegation(holder))
    where = next((found for found in values if found[1] is not ownership.ABSENT), None)
    if where is None or slot == ownership.SLOT_USERS:
        raise NotFound(
            f"{holder_name} has no slot {slot!r}", field="object", remedy=f"`batos inspect {holder_name}` lists them."
        )
    return {
        "object": holder_name,
        "slot": slot,
        "holder": roots.name_of_object(root, where[0]),
        "value": _value_for(root, where[1], user),
    }


def _value_for(root: Root, value: object, user: str) -> Any:
    """Return a slot's value as plain data; of a method, with what a named user may see of its origin."""
    shown = as_json(value)
    if user and isinstance(value, Method):
        shown["method"]["provenance"] = provenance_for(root, shown["method"]["provenance"], user)
    return shown


def _with_names(root: Root, described: MirroredObject) -> MirroredObject:
    """Return a description with the names of root objects in place of their references."""
    names = {reference(root[name]): name for name in roots.OBJECTS if name in root}
    parents = [names.get(each, each) for each in described["parents"]]
    return {**described, "parents": parents, "lineage": [names.get(each, each) for each in described["lineage"]]}
