"""The verbs of schedules and of the inbox: what is planned, and what it brought."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from batos.agency import effect_questions, granting, schedule_rules
from batos.agency.records import schedule_records
from batos.agency.records.schedule_records import EntryData, ScheduleBrief, ScheduleData, ScheduleOrder
from batos.agency.schedule_rules import Rule
from batos.config import Settings
from batos.home_folder import starts_with_machine
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.missions.readings import Readings
from batos.objects.prototype import own_slots
from batos.protocol import brief
from batos.protocol.effect_documents import (
    AddedSchedule,
    InboxEntry,
    InboxPage,
    ReadInbox,
    RemovedSchedule,
    RunSchedule,
    ScheduleDocument,
    SchedulePage,
    ScheduleWork,
)
from batos.protocol.errors import BriefError
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.schedule_verbs import (
    INBOX,
    INBOX_READ,
    SCHEDULE_ADD,
    SCHEDULE_PAUSE,
    SCHEDULE_REMOVE,
    SCHEDULE_RESUME,
    SCHEDULE_RUN,
    SCHEDULE_SHOW,
    SCHEDULES,
    InboxArgs,
    InboxReadArgs,
    ScheduleAddArgs,
    ScheduleArgs,
)

#: The most characters of an answer in the inbox.
_SHOWN: Final = 4_000


def reads(of: Readings, in_thread: Callable[..., Awaitable[Any]]) -> Mapping[str, Handler]:
    """Return the function of each verb that only reads, by name; `in_thread` runs what reads the image."""

    def list_schedules(user: str | None) -> SchedulePage:
        with of.image.snapshot() as root:
            found = [
                describe(each, of.clock())
                for each in map(schedule_records.data_of, schedule_records.list_all(root, user))
            ]
        return {"schedules": sorted(found, key=lambda each: (each["next"] is None, each["next"] or "", each["id"]))}

    def show(given: ScheduleArgs) -> ScheduleDocument:
        with of.image.snapshot() as root:
            return describe(
                schedule_records.data_of(schedule_records.find(root, given.schedule, given.user)), of.clock()
            )

    def list_inbox(given: InboxArgs) -> InboxPage:
        with of.image.snapshot() as root:
            kept = schedule_records.list_inbox(root, given.user)
            shown = [each for each in kept if given.all or not each[1]["is_read"]][: given.limit]
            return {
                "entries": [_entry(root, *each) for each in shown],
                "unread": sum(not each["is_read"] for _, each in kept),
                "waiting": effect_questions.count_unwatched(root, given.user, iso(of.clock())),
            }

    return dict(
        (
            bind(SCHEDULES, lambda given, *_told: in_thread(list_schedules, given.user)),
            bind(SCHEDULE_SHOW, lambda given, *_told: in_thread(show, given)),
            bind(INBOX, lambda given, *_told: in_thread(list_inbox, given)),
        )
    )


def changes(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb that changes something, by name."""

    def read(name: str, user: str | None = None) -> AddedSchedule:
        with uvm.image.snapshot() as root:
            found = schedule_records.data_of(schedule_records.find(root, name, user))
        return {
            "schedule": describe(found, uvm.clock()),
            "changes_clock": schedule_rules.changes_clock(Rule(*found["rule"]), uvm.clock()),
            "is_served": uvm.schedules.job.is_started,
            "starts_by_itself": starts_with_machine(uvm.settings.home, os.environ),
        }

    async def add(given: ScheduleAddArgs, *_told: object) -> AddedSchedule:
        order = await asyncio.to_thread(_order, given, uvm.settings, uvm.clock())
        return read(await shield(uvm.schedules.add(order)))

    async def turn(given: ScheduleArgs, *, on: bool) -> AddedSchedule:
        await shield(uvm.schedules.set_state(given.schedule, given.user, on=on))
        return read(given.schedule)

    async def run(given: ScheduleArgs, *_told: object) -> RunSchedule:
        before = read(given.schedule, given.user)["schedule"]
        mission = await shield(uvm.schedules.run_now(before["id"], given.user))
        schedule = read(before["id"])["schedule"]
        found = schedule["reason"] if schedule["runs"] > before["runs"] else "nothing is new"
        did = "" if mission else f"The folder was looked at: {found}."
        did = f"{schedule['text']!r} is in the inbox" if schedule["work"] == "remind" else did
        return {"schedule": schedule, "mission": mission, "did": did}

    async def remove(given: ScheduleArgs, *_told: object) -> RemovedSchedule:
        found = await shield(
            uvm.image.shared.apply(lambda root: schedule_records.remove(root, given.schedule, given.user))
        )
        return {"removed": describe(found, uvm.clock())}

    async def mark(given: InboxReadArgs, *_told: object) -> ReadInbox:
        count = await shield(
            uvm.image.shared.apply(lambda root: schedule_records.mark_read(root, given.entry, given.user))
        )
        return {"read": count}

    return dict(
        (
            bind(SCHEDULE_ADD, add),
            bind(SCHEDULE_PAUSE, lambda given, *_told: turn(given, on=False)),
            bind(SCHEDULE_RESUME, lambda given, *_told: turn(given, on=True)),
            bind(SCHEDULE_RUN, run),
            bind(SCHEDULE_REMOVE, remove),
            bind(INBOX_READ, mark),
        )
    )


def _order(given: ScheduleAddArgs, settings: Settings, now: datetime) -> ScheduleOrder:
    """Return what is to be planned.

    Raises: BriefError: the time, the zone, the folder or a field of the brief is wrong. Refused: it is the mind's own.
    """
    rule = schedule_rules.parse(given.when, given.zone or schedule_rules.local_zone(os.environ), now)
    work: ScheduleWork = "remember" if given.remember else "remind" if given.remind else "ask"
    _check_work(given, work, rule)
    folder = rule.folder
    if rule.kind == "file":
        folder, _ = granting.check_target("file", folder, settings.home, granting.data_places(settings))
        rule = replace(rule, folder=folder, text=f"on file {folder}")
    user, asked = given.user or settings.asker, ScheduleBrief()
    if given.effort is not None:
        asked["effort"] = given.effort
    if given.persona is not None:
        asked["persona"] = given.persona
    if given.grants:
        asked["grants"] = list(given.grants)
    brief.parse({**asked, "text": given.text or "-", "user": user})
    return ScheduleOrder(user, rule, work, given.text or "", folder, given.catch_up, asked)


def _check_work(given: ScheduleAddArgs, work: ScheduleWork, rule: Rule) -> None:
    """Check that what is to be done fits the time. Raises: BriefError."""
    if given.remember and (given.remind or rule.kind != "file"):
        what = "what is remembered is a folder as it changes"
        raise BriefError(what, field="args.remember", remedy='Write: batos schedule add "on file FOLDER" --remember')
    if rule.kind == "file" and work == "remind":
        raise BriefError("a reminder has a time", field="args.remind", remedy="Ask a question about the files instead.")
    if given.text is None and work != "remember":
        what = "nothing says what is to be asked, or of what you are to be reminded"
        raise BriefError(what, field="args.text", remedy="Give it behind the time, in quotes.")


def describe(found: ScheduleData, now: datetime) -> ScheduleDocument:
    """Return a schedule for doors, as of now."""
    rule = Rule(*found["rule"])
    last, is_active = datetime.fromisoformat(found["last"]), found["state"] == "active"
    upcoming = schedule_rules.list_upcoming(rule, last, now) if is_active else []
    return {
        "id": found["id"], "user": found["user"], "when": rule.text, "zone": rule.zone, "work": found["work"],
        "text": found["text"], "folder": found["folder"], "catch_up": found["catch_up"],
        "grants": list(found["brief"].get("grants", ())), "state": found["state"], "reason": found["reason"],
        "made_at": found["made_at"], "last": found["last"] if found["runs"] or found["skipped"] else None,
        "next": found["next"], "upcoming": [each.isoformat(timespec="seconds") for each in upcoming],
        "runs": found["runs"], "skipped": found["skipped"], "failures": found["failures"], "mission": found["mission"],
    }  # fmt: skip


def _entry(root: Root, name: str, kept: EntryData) -> InboxEntry:
    """Return an entry of the inbox with the answer of its mission."""
    told = InboxEntry(
        entry=name, schedule=kept["schedule"], due=kept["due"], came=kept["came"], skipped=kept["skipped"],
        is_read=kept["is_read"], text=kept["text"],
    )  # fmt: skip
    found = None if kept["mission"] is None else roots.find_record(root, kept["mission"])
    if found is not None:
        told["mission"], told["status"] = str(kept["mission"]), found.status.word
        told["text"] = found.brief.value["text"]
        answer = own_slots(found.thought).get("answer")
        if found.status.word == "done" and isinstance(answer, str):
            told["answer"] = answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}..."
    return told
