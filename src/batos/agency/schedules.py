"""Schedules: what is due is begun once, by one node, whatever was killed, slept or set its clock meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

import structlog

from batos.agency import schedule_rules
from batos.agency.records import effect_records, schedule_records
from batos.agency.records.schedule_records import DOOR, FileLook, Firing, ScheduleData, ScheduleOrder
from batos.agency.schedule_rules import Rule
from batos.agency.schedule_steps import ScheduleStep, decide
from batos.concurrency.jobs import Job
from batos.events import Events
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.records import OPEN
from batos.image.roots import Root
from batos.image.writer import Noted
from batos.protocol.brief import AttachmentRef, File
from batos.protocol.errors import BatosError, Refused, message_of
from batos.protocol.event_payloads import SCHEDULE_FIRED, ScheduleFired
from batos.records.erased_words import MARK

T = TypeVar("T")
_log = structlog.get_logger("batos")

#: The longest time in seconds between two looks at the clock: it may be set, and a machine may sleep.
LOOK: Final = 60.0
#: The shortest time in seconds between two looks at folders, and how many times as long as the last look it is.
FOLDERS: Final = 5.0
_SHARE: Final = 50.0
#: Looks of one run: what is done may let something else be due, or end.
_LOOKS: Final = 2


class Acceptance(Protocol):
    """Accepts missions, as the rooms above do."""

    async def __call__(self, brief: Mapping[str, object], files: Sequence[File] = (), *, noted: Noted) -> str:
        """Accept a mission, and return its id; `noted` is called with it in the accepting commit.

        A brief with the idempotency key of an earlier one is that mission.
        """
        ...


class ChangedFiles(NamedTuple):
    """The files that a mission is to be asked about, and all that its folder has."""

    files: list[File]
    seen: FileLook


class RememberedPart(NamedTuple):
    """The changes of memory by a look at a folder, in words ("" if none), and if files are left for the next look."""

    did: str
    is_more: bool


class Folders(Protocol):
    """Looks at the folders of schedules. A file counts when two looks found it with the same size and time."""

    async def remember(self, schedule: ScheduleData) -> RememberedPart:
        """Remember some of what is new or changed; forget what went when nothing is left.

        Raises: Refused: the folder is not there, or is empty where it was not.
        """
        ...

    async def list_changed(self, schedule: ScheduleData) -> ChangedFiles:
        """Return what is new or changed since the last mission about the folder; at the first look nothing is.

        Raises: Refused: the folder is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScheduleParts:
    """The parts of schedules: where they stand, and what begins missions."""

    image: LivingImage
    events: Events
    clock: Callable[[], datetime]
    accept: Acceptance
    #: Hands an accepted mission to the workers.
    begin: Callable[[str], Awaitable[None]]
    is_idle: Callable[[], bool]
    monotonic: Callable[[], float] = time.monotonic


class Schedules:
    """Begins what is due. A process that is killed between two steps leaves nothing half done: each is one commit."""

    def __init__(self, parts: ScheduleParts) -> None:
        self._parts = parts
        self._image = parts.image
        self.job = Job("schedules", self._work, lambda: parts.image.publishing.is_here)
        #: When a person last asked something: monotonic seconds, and the moment.
        self._asked_at, self._asked = parts.monotonic(), parts.clock()
        #: Missions that schedules began in this process: nobody is there who asks them.
        self._own: set[str] = set()
        self._running, self._is_asking = asyncio.Lock(), False
        self._folders: Folders | None = None
        #: When folders are looked at again, in monotonic seconds; and the moment of the last look at the clock.
        self._folders_at, self._looked = 0.0, parts.clock()
        parts.image.signals.asked.call(self._note_asked)
        parts.image.signals.answered.call(self._note_answered)

    def keep(self, folders: Folders | None = None) -> None:
        """Begin what is due from now on, and look at folders; for a process that stays to work."""
        self._folders = folders
        self.job.start()
        self.job.wake()

    def _note_asked(self, mission: str) -> None:
        if not self._is_asking:
            self._note_person()

    def _note_person(self) -> None:
        self._asked_at, self._asked = self._parts.monotonic(), self._parts.clock()

    def _note_answered(self, mission: str, _conversation: str | None) -> None:
        if mission in self._own:
            self._own.discard(mission)
            self.job.wake()

    # -- what a person does

    async def add(self, order: ScheduleOrder) -> str:
        """Keep a schedule, and return its id.

        Raises: Refused: there are too many. NotFound: its user has no such grant.
        """
        self._note_person()
        at = self._parts.clock()
        following = schedule_rules.next_after(order.rule, at)

        def change(root: Root) -> str:
            effect_records.check_granted(root, order.brief.get("grants", ()), order.user)
            return schedule_records.add(root, order, at, following)

        name = await self._image.shared.apply(change)
        self.job.wake()
        return name

    async def set_state(self, name: str, user: str | None, *, on: bool) -> None:
        """Let a schedule rest, or wait for its next moment from now on: what came meanwhile is left out.

        Raises: NotFound: there is none. Refused: it has ended.
        """
        at = self._parts.clock()

        def change(root: Root) -> None:
            found = schedule_records.find(root, name, user)
            following = schedule_rules.next_after(Rule(*found["rule"]), at) if on else None
            if found["state"] == "ended":
                remedy = "Add another one."
                raise Refused(f"{found['id']} has ended: its moment has passed", field="schedule", remedy=remedy)
            if on and found["state"] != "active":
                found.update(last=iso(at), settled=found["mission"], seen=None)
            schedule_records.set_state(found, "active" if on else "paused", following=following)

        await self._image.shared.apply(change)
        self.job.wake()

    async def run_now(self, name: str, user: str | None) -> str | None:
        """Do what a schedule does now, whatever its rule says; return its mission, if it asks one.

        Raises: NotFound: there is none. Refused: its folder cannot be looked at. Errors of accepting a mission.
        """
        mission = None
        async with self._running:
            for _ in range(_LOOKS):  # a file counts when two looks found it alike
                with self._image.snapshot() as root:
                    found = schedule_records.data_of(schedule_records.find(root, name, user))
                if found["rule"][0] != "file":
                    return await self._fire(found, Firing(found["id"], None, self._parts.clock(), None))
                if self._folders is None:
                    raise Refused("no server runs, which looks at folders", remedy="Start one: `batos serve`.")
                mission = mission or (await self._look_at_folder(self._folders, found))[0]
            return mission

    # -- what is due

    async def _work(self) -> float | None:
        """Begin what is due, and return the seconds after which to look again; None: there is nothing to wait for."""
        if self._image.refusing is not None:
            return None
        async with self._running:
            for _ in range(_LOOKS):
                for step in await asyncio.to_thread(self._look):
                    await self._do(step)
            if self._folders is not None and self._parts.monotonic() >= self._folders_at:
                await self._look_at_folders(self._folders)
            return await asyncio.to_thread(self._pause)

    def _look(self) -> list[ScheduleStep]:
        """Return what is to be done now."""
        self._looked = now = self._parts.clock()
        with self._image.snapshot() as root:
            found = [
                (schedule_records.data_of(each), _word_of(root, each["mission"]))
                for each in schedule_records.list_all(root)
            ]
        steps = (decide(each, word, now, self._quiet(each)) for each, word in found)
        return [step for step in steps if step is not None]

    def _quiet(self, schedule: ScheduleData) -> float | None:
        """Return the seconds in which nobody asked anything; None where a schedule has had its run of this quiet."""
        if not self._parts.is_idle() or schedule["last"] > max(iso(self._asked), schedule["made_at"]):
            return None
        return self._parts.monotonic() - self._asked_at

    def _pause(self) -> float | None:
        now = self._parts.clock()
        with self._image.snapshot() as root:
            waits = [each for each in schedule_records.list_all(root) if each["state"] == "active"]
            moments = [datetime.fromisoformat(at) for each in waits for at in (each["next"], each["retry"]) if at]
        if not waits:
            return None
        # A moment that has come and has begun nothing waits for something else, such as a retry.
        pauses = [LOOK, *((each - now).total_seconds() for each in moments if each > self._looked)]
        if any(each["rule"][0] == "file" for each in waits):
            pauses.append(self._folders_at - self._parts.monotonic())
        return max(0.0, min(pauses))

    async def _look_at_folders(self, folders: Folders) -> None:
        """Look at each folder once; the next look is the later, the longer one takes that finds nothing."""
        begun, found_any = self._parts.monotonic(), False
        with self._image.snapshot() as root:
            names = [each["id"] for each in schedule_records.list_all(root) if each["rule"][0] == "file"]
        for name in names:
            with self._image.snapshot() as root:
                each = _active(root, name)
                is_open = each is not None and _word_of(root, each["mission"]) in OPEN
            if each is not None and not is_open:
                looked = await self._do_or_park(name, self._look_at_folder(folders, each))
                found_any = found_any or any(looked or ())
        now = self._parts.monotonic()
        self._folders_at = now + (FOLDERS if found_any else max(FOLDERS, _SHARE * (now - begun)))

    async def _look_at_folder(self, folders: Folders, schedule: ScheduleData) -> tuple[str | None, bool]:
        """Look at a folder; return the mission that this began, and if something was remembered or is left."""
        at = self._parts.clock()
        if schedule["work"] == "remember":
            did, is_more = await folders.remember(schedule)
            if did:
                await self._change(
                    schedule["id"], lambda kept: kept.update(reason=did, runs=kept["runs"] + 1, last=iso(at))
                )
            return None, is_more or bool(did)
        files, seen = await folders.list_changed(schedule)
        if files:
            # Later than the one before also where the clock was set back: else its files would count as new again.
            moment = max(at, datetime.fromisoformat(schedule["last"]) + timedelta(milliseconds=1))
            return await self._fire(schedule, Firing(schedule["id"], moment, at, None, seen=seen), files), False
        if seen != schedule["seen"]:
            await self._change(schedule["id"], lambda kept: kept.update(seen=seen))
        return None, False

    async def _do(self, step: ScheduleStep) -> None:
        """Do one step, unless somebody has removed its schedule meanwhile, or lets it rest."""
        with self._image.snapshot() as root:
            found = _active(root, step.name)
        if found is not None:
            await self._do_or_park(step.name, self._do_step(found, step))

    async def _do_or_park(self, name: str, work: Awaitable[T]) -> T | None:
        """Do something about a schedule; what is refused parks it, and keeps no other waiting."""
        try:
            return await work
        except BatosError as error:
            _log.warning("schedule.not_begun", schedule=name, reason=error.as_dict())
            if error.retry:
                raise
            await self._park(name, message_of(error))
            return None

    async def _do_step(self, found: ScheduleData, step: ScheduleStep) -> None:
        if step.parks:
            await self._park(step.name, step.parks)
        elif step.ends:
            await self._change(step.name, lambda schedule: schedule_records.set_state(schedule, "ended"))
        elif step.clock is not None:
            following = schedule_rules.next_after(Rule(*found["rule"]), step.clock)
            again = {"last": iso(step.clock), "next": following and iso(following), "retry": None}
            await self._change(step.name, lambda schedule: schedule.update(again))
        elif step.retry is not None:
            at = iso(step.retry)
            await self._change(step.name, lambda schedule: schedule.update(retry=at, failures=step.failures))
        elif step.failures:
            await self._run_again(found, step.failures)
        elif step.due is not None:
            due, skipped = step.due, step.due.skipped
            for moment in step.moments:
                await self._fire(found, Firing(step.name, moment, self._parts.clock(), due.next, skipped))
                skipped = 0
            if not step.moments and due.newest is not None:
                how = partial(schedule_records.note_skipped, newest=due.newest, following=due.next, count=due.skipped)
                await self._change(step.name, how)

    async def _park(self, name: str, reason: str) -> None:
        _log.warning("schedule.parked", schedule=name, reason=reason)
        await self._change(name, lambda schedule: schedule_records.set_state(schedule, "parked", reason))

    async def _change(self, name: str, how: Callable[[schedule_records.Schedule], None]) -> None:
        def change(root: Root) -> None:
            found = root[roots.SCHEDULES].get(name)
            if found is not None:
                how(found)

        await self._image.shared.apply(change)

    async def _fire(self, schedule: ScheduleData, firing: Firing, files: Sequence[File] = ()) -> str | None:
        """Do what a schedule does at a moment: once, whoever else tries it too."""
        brief, mission = self._brief_of(schedule), None
        if schedule["work"] == "remind":
            said = firing._replace(text=schedule["text"])
            await self._image.shared.apply(lambda root: schedule_records.note_firing(root, None, said))
        else:
            key = {} if firing.moment is None else {"idempotency_key": f"{firing.name} {iso(firing.moment)}"}
            noted = partial(schedule_records.note_firing, firing=firing)
            mission = await self._accept({**brief, **key}, noted, files)
        self._tell(schedule, firing, mission)
        return mission

    async def _run_again(self, schedule: ScheduleData, failures: int) -> None:
        """Run the newest mission again, as its own retry: what it paid for is not paid again."""
        brief = {
            **self._brief_of(schedule), "ancestor": schedule["mission"],
            "idempotency_key": f"{schedule['id']} again {schedule['mission']}",
        }  # fmt: skip
        noted = partial(schedule_records.note_retry, name=schedule["id"], failures=failures)
        await self._accept(brief, noted, await asyncio.to_thread(self._files_of, str(schedule["mission"])))

    def _files_of(self, mission: str) -> list[File]:
        """Return the files that a mission was asked about; those that were erased meanwhile are not among them."""
        with self._image.snapshot() as root:
            record, kept = roots.find_record(root, mission), root[roots.ATTACHMENTS]
            told = () if record is None else record.brief.value.get("attachments", ())
            return [File(AttachmentRef(**each), kept[each["sha256"]].read()) for each in told if each["sha256"] in kept]

    async def _accept(self, brief: Mapping[str, object], noted: Noted, files: Sequence[File] = ()) -> str:
        self._is_asking = True
        try:
            mission = await self._parts.accept(brief, files, noted=noted)
        finally:
            self._is_asking = False
        self._own.add(mission)
        with suppress(Refused):  # it has ended already: it was accepted before a kill
            await self._parts.begin(mission)
        return mission

    def _brief_of(self, schedule: ScheduleData) -> dict[str, object]:
        """Return the brief of a schedule's mission.

        Raises: Refused: its words were erased.
        """
        if MARK in schedule["text"]:
            raise Refused("words of it were erased", remedy="`batos schedule remove` it, and add another one.")
        return {
            **schedule["brief"], "text": schedule["text"], "user": schedule["user"], "priority": -1,
            "policy": {"wait_ollama": True},
            "origin": {"door": DOOR, "client": schedule["id"]},
        }  # fmt: skip

    def _tell(self, schedule: ScheduleData, firing: Firing, mission: str | None) -> None:
        due = iso(firing.moment or firing.at)
        told = ScheduleFired(schedule=firing.name, due=due, skipped=firing.skipped, text=schedule["text"])
        if mission is not None:
            told["mission"] = mission
        self._parts.events.emit(SCHEDULE_FIRED, told)


def _active(root: Root, name: str) -> ScheduleData | None:
    """Return a schedule that waits for something; None if there is none."""
    kept = root[roots.SCHEDULES].get(name)
    return None if kept is None or kept["state"] != "active" else schedule_records.data_of(kept)


def _word_of(root: Root, mission: str | None) -> str | None:
    """Return the status of a mission; None if there is none."""
    found = None if mission is None else roots.find_record(root, mission)
    return None if found is None else found.status.word
