"""Schedules: each moment begins once, what was missed is told, and what fails is tried again and then parked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.history.test_as_of_past_questions import Door

from batos.agency import schedule_rules
from batos.agency.records import effect_records, schedule_records
from batos.agency.records.schedule_records import (
    MOST_ENTRIES,
    EntryData,
    Firing,
    ScheduleBrief,
    ScheduleData,
    ScheduleOrder,
)
from batos.agency.schedule_rules import CatchUp
from batos.agency.schedule_steps import BACKOFF
from batos.agency.schedules import LOOK
from batos.care import foreign_minds
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.brief import as_file
from batos.protocol.effect_documents import ScheduleWork
from batos.protocol.errors import BatosError, NotFound, OllamaTimeout, Refused
from batos.records.erased_words import MARK
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

START = datetime(2026, 11, 30, 17, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class World:
    """A mind, its clock, and what its model says; `failing`: it says that it failed."""

    now: datetime = START
    seconds: float = 0.0
    failing: bool = False
    bridge: ScriptedBridge = field(init=False)
    uvm: UVM = field(init=False)

    def __post_init__(self) -> None:
        self.bridge = ScriptedBridge(self.respond)

    def respond(self, request: ChatRequest) -> str | BatosError:
        """Answer, or fail."""
        return OllamaTimeout("load", seconds=1.0) if self.failing else "Seven."

    async def add(
        self, when: str = "every hour", *, work: ScheduleWork = "ask", text: str = "What is due?",
        catch_up: CatchUp = "one", **brief: object,
    ) -> str:  # fmt: skip
        """Add a schedule; return its id."""
        rule = schedule_rules.parse(when, "Europe/Berlin", self.now)
        return await self.uvm.schedules.add(
            ScheduleOrder("tester", rule, work, text, "", catch_up, ScheduleBrief(**brief))  # type: ignore[typeddict-item]
        )

    async def at(self, moment: datetime) -> float | None:
        """Begin what is due at a moment, and wait for its end; return when it looks again."""
        self.now = moment
        pause = await self.uvm.schedules._work()
        for mission in tuple(self.uvm.schedules._own):
            await self.uvm.missions.wait_for_end(mission)
        return pause

    def schedule(self, name: str) -> ScheduleData:
        """Return a schedule as it is."""
        with self.uvm.image.snapshot() as root:
            return schedule_records.data_of(schedule_records.find(root, name))

    def missions(self) -> dict[str, str]:
        """Return the missions that schedules began, the oldest first, with their statuses."""
        with self.uvm.image.snapshot() as root:
            return {
                name: record.status.word
                for name, record in roots.records_of(root)
                if record.brief.value["origin"]["door"] == "schedule"
            }

    def inbox(self) -> list[EntryData]:
        """Return the inbox, the newest entry first."""
        with self.uvm.image.snapshot() as root:
            return [kept for _, kept in schedule_records.list_inbox(root, None)]


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    """A mind with nothing planned."""
    told = World()
    async with scripted_uvm(home, told.bridge, seams=Seams(clock=lambda: told.now)) as uvm:
        told.uvm = uvm
        yield told


async def test_a_moment_begins_once(tmp_path: Path) -> None:
    """Neither before it comes, nor again; the answer is in the inbox, and the wait is never longer than a look."""
    async with world(tmp_path) as told:
        assert await told.uvm.schedules._work() is None  # nothing is planned: nothing looks at the clock
        name = await told.add()
        assert await told.at(START + HOUR - timedelta(seconds=20)) == pytest.approx(20)
        assert told.missions() == {}
        assert await told.at(START + HOUR) == LOOK
        assert await told.at(START + HOUR) == LOOK
        (mission,) = told.missions()
        found = told.schedule(name)
        assert (found["runs"], found["skipped"], found["mission"]) == (1, 0, mission)
        assert (found["last"], found["next"]) == (iso(START + HOUR), iso(START + 2 * HOUR))
        (entry,) = told.inbox()
        assert (entry["mission"], entry["due"], entry["is_read"]) == (mission, iso(START + HOUR), False)
        brief = told.uvm.readings.mission(mission)["brief"]
        assert brief["text"] == "What is due?"
        assert brief["origin"] == {"door": "schedule", "client": name}


async def test_what_was_missed_is_told(tmp_path: Path) -> None:
    """Three days asleep, and set back afterwards: one run, 68 left out, and nothing again."""
    async with world(tmp_path) as told:
        name = await told.add()
        await told.at(START + 69.5 * HOUR)
        await told.at(START + 3 * HOUR)
        await told.at(START + 69.5 * HOUR)
        assert len(told.missions()) == 1
        assert told.inbox()[0]["skipped"] == told.schedule(name)["skipped"] == 68


@pytest.mark.parametrize(("catch_up", "runs", "skipped"), [("none", 0, 3), ("one", 1, 2), ("all", 3, 0)])
async def test_how_much_is_made_up_for(tmp_path: Path, catch_up: CatchUp, runs: int, skipped: int) -> None:
    """As the schedule says; each run has its moment."""
    async with world(tmp_path) as told:
        name = await told.add(catch_up=catch_up)
        await told.at(START + 3.5 * HOUR)
        found = told.schedule(name)
        assert (len(told.missions()), found["runs"], found["skipped"]) == (runs, runs, skipped)
        assert [each["due"] for each in told.inbox()] == [iso(START + n * HOUR) for n in (3, 2, 1)[:runs]]
        assert found["next"] == iso(START + 4 * HOUR)


async def test_a_reminder_asks_no_model(tmp_path: Path) -> None:
    """It stands in the inbox, late if nothing ran; then the schedule has ended, and cannot be resumed."""
    async with world(tmp_path) as told:
        name = await told.add("once in 1 hour", work="remind", text="Call the dentist.")
        assert await told.at(START + 5 * HOUR) is None
        (entry,) = told.inbox()
        assert (entry["text"], entry["mission"]) == ("Call the dentist.", None)
        assert (entry["due"], entry["came"]) == (iso(START + HOUR), iso(START + 5 * HOUR))
        assert told.bridge.history == []
        assert told.schedule(name)["state"] == "ended"
        with pytest.raises(Refused):
            await told.uvm.schedules.set_state(name, None, on=True)


async def test_what_fails_is_tried_again_and_then_parked(tmp_path: Path) -> None:
    """After 1, 5 and 30 minutes, by a retry; a person lets it go on, and one failure is forgotten by success."""
    async with world(tmp_path) as told:
        name = await told.add()
        told.failing, now = True, START + HOUR
        await told.at(now)
        for number, pause in enumerate(BACKOFF, start=1):
            await told.at(now)  # it is seen to have failed
            assert len(told.missions()) == number
            await told.at(now + timedelta(seconds=pause - 1))
            assert len(told.missions()) == number
            now += timedelta(seconds=pause)
            await told.at(now)
        assert set(told.missions().values()) == {"failed"}
        assert len(told.missions()) == 1 + len(BACKOFF)
        await told.at(now)
        assert told.schedule(name)["state"] == "parked"
        assert "4 times" in told.schedule(name)["reason"]
        (entry,) = told.inbox()  # one moment, one entry: that of the newest try
        ancestors = [told.uvm.readings.mission(each)["brief"].get("ancestor") for each in told.missions()]
        assert ancestors == [None, *list(told.missions())[:-1]]
        assert entry["mission"] == list(told.missions())[-1] == told.schedule(name)["mission"]
        await told.at(now + 10 * HOUR)
        assert len(told.missions()) == 4
        told.failing = False
        await told.uvm.schedules.set_state(name, None, on=True)
        await told.at(told.now + HOUR)
        assert list(told.missions().values())[-1] == "done"
        assert (told.schedule(name)["state"], told.schedule(name)["failures"]) == ("active", 0)


async def test_a_retry_is_about_the_same_files(tmp_path: Path) -> None:
    """A question about a folder's changes that failed is asked again with them."""
    async with world(tmp_path) as told:
        name = await told.add(f"on file {tmp_path}")
        told.failing, file = True, as_file("new.md", b"This is new.")
        firing = Firing(name, START + HOUR, START + HOUR, None, seen={})
        mission = await told.uvm.schedules._fire(told.schedule(name), firing, [file])
        await told.uvm.missions.wait_for_end(str(mission))
        await told.at(START + HOUR)
        await told.at(START + HOUR + timedelta(seconds=BACKOFF[0]))
        briefs = [told.uvm.readings.mission(each)["brief"] for each in told.missions()]
        assert len(briefs) == 2
        assert briefs[1]["ancestor"] == mission
        assert briefs[0]["attachments"] == briefs[1]["attachments"] == [file.ref.model_dump()]


async def test_a_retry_that_waits_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    """A moment that comes before the retry of the one before it waits; so does who looks at the clock."""
    async with world(tmp_path) as told:
        name = await told.add("every 1 minute")
        told.failing, now = True, START + timedelta(minutes=1)
        await told.at(now)
        await told.at(now + timedelta(seconds=5))  # it is seen to have failed
        assert told.schedule(name)["retry"] == iso(now + timedelta(seconds=65))
        assert await told.at(now + timedelta(seconds=62)) == pytest.approx(3)


async def test_a_clock_that_was_wrong_by_years(tmp_path: Path) -> None:
    """What was done in a year that has not come keeps nothing waiting until then."""
    async with world(tmp_path) as told:
        name = await told.add()
        await told.at(START + 90_000 * HOUR)
        await told.at(START + 5.5 * HOUR)
        assert (len(told.missions()), told.schedule(name)["next"]) == (1, iso(START + 6.5 * HOUR))
        await told.at(START + 6.5 * HOUR)
        assert len(told.missions()) == 2


async def test_a_zone_that_is_not_known_parks_one(tmp_path: Path) -> None:
    """As after an erasure of its words, or without tzdata: the others go on."""
    async with world(tmp_path) as told:
        lost, kept = await told.add("0 7 * * *"), await told.add()

        def erase(root: Root) -> None:
            found = schedule_records.find(root, lost)
            found["rule"] = (*found["rule"][:2], f"Europe/{MARK}", *found["rule"][3:])

        await told.uvm.image.shared.apply(erase)
        await told.at(START + HOUR)
        assert told.schedule(lost)["state"] == "parked"
        assert "no time zone" in told.schedule(lost)["reason"]
        assert told.schedule(kept)["runs"] == 1
        await told.uvm.schedules.set_state(lost, None, on=False)


async def test_what_has_ended_makes_room(tmp_path: Path) -> None:
    """A reminder of long ago keeps nobody from another; what is still to come does."""
    async with world(tmp_path) as told:
        ended = await told.add("once in 1 hour", work="remind", text="Call.")
        await told.at(START + HOUR)
        order = ScheduleOrder("tester", schedule_rules.parse("every hour", "UTC", START), "ask", "?", "", "one", {})

        def fill(root: Root) -> None:
            for _ in range(schedule_records.MOST):
                schedule_records.add(root, order, START, None)

        await told.uvm.image.shared.apply(fill)
        with pytest.raises(NotFound):
            told.schedule(ended)
        with pytest.raises(Refused, match="the most"):
            await told.add()


async def test_two_that_begin_the_same_moment_begin_one_mission(tmp_path: Path) -> None:
    """As when two nodes hold themselves for the one that publishes."""
    async with world(tmp_path) as told:
        found = told.schedule(await told.add())
        firing = Firing(found["id"], START + HOUR, START + HOUR, START + 2 * HOUR)
        begun = await asyncio.gather(*(told.uvm.schedules._fire(found, firing) for _ in range(3)))
        assert len(set(begun)) == len(told.missions()) == len(told.inbox()) == 1
        assert told.schedule(found["id"])["runs"] == 1


async def test_a_person_pauses_runs_and_removes(tmp_path: Path) -> None:
    """What came in a pause is left out; what is run by hand leaves the rule as it is."""
    async with world(tmp_path) as told:
        name = await told.add()
        await told.uvm.schedules.set_state(name, None, on=False)
        assert await told.at(START + 5 * HOUR) is None
        assert told.schedule(name)["next"] is None
        await told.uvm.schedules.set_state(name, None, on=True)
        await told.at(START + 5.5 * HOUR)
        assert told.missions() == {}
        assert told.schedule(name)["next"] == iso(START + 6 * HOUR)
        mission = await told.uvm.schedules.run_now(name[:8], None)
        assert mission is not None
        await told.uvm.missions.wait_for_end(mission)
        assert told.missions() == {mission: "done"}
        assert told.schedule(name)["next"] == iso(START + 6 * HOUR)
        with pytest.raises(NotFound):
            await told.uvm.schedules.run_now(name, "somebody else")
        await told.uvm.image.shared.apply(lambda root: schedule_records.remove(root, name, "tester"))
        assert await told.at(START + 9 * HOUR) is None
        assert len(told.missions()) == 1
        assert len(told.inbox()) == 1


async def test_quiet_is_used_once(tmp_path: Path) -> None:
    """A rule for quiet hours runs when nobody has asked for so long, and again only after somebody has."""
    async with world(tmp_path) as told:
        await told.add("on idle 10 minutes")
        seconds = iter([599.0, 601.0, 5_000.0, 0.0, 601.0])
        told.uvm.schedules._asked_at = 0.0
        told.uvm.schedules._parts = replace(told.uvm.schedules._parts, monotonic=lambda: told.seconds)
        runs = []
        for number, told.seconds in enumerate(seconds):
            if told.seconds == 0.0:
                told.now += HOUR
                await told.uvm.missions.ask({"text": "Hello?"})
                told.uvm.schedules._asked_at = 0.0
            await told.at(told.now + timedelta(minutes=number + 1))
            runs.append(len(told.missions()))
        assert runs == [0, 1, 1, 1, 2]


async def test_somebody_who_asks_while_a_folder_is_looked_at_is_noted(tmp_path: Path) -> None:
    """A long look is not what asks."""
    async with world(tmp_path) as told:
        await told.add("on idle 10 minutes")
        told.uvm.schedules._asked_at = -900.0
        told.uvm.schedules._parts = replace(told.uvm.schedules._parts, monotonic=lambda: told.seconds)
        async with told.uvm.schedules._running:
            await told.uvm.missions.ask({"text": "Hello?"})
        await told.at(START + HOUR)
        assert told.missions() == {}


async def test_nobody_acts_without_a_grant(tmp_path: Path) -> None:
    """A schedule names only grants that its user has; one that is taken back parks it."""
    async with world(tmp_path) as told:
        with pytest.raises(NotFound, match="notes"):
            await told.add(grants=["notes"])

        def grant(root: Root) -> None:
            effect_records.add_capability(root, "notes", "file", "/notes", "queryable", ("tester", iso(START)))

        await told.uvm.image.shared.apply(grant)
        name = await told.add(grants=["notes"])
        await told.at(START + HOUR)
        assert list(told.missions().values()) == ["done"]
        await told.uvm.image.shared.apply(lambda root: effect_records.revoke_capability(root, "notes"))
        await told.at(START + 2 * HOUR)
        found = told.schedule(name)
        assert (found["state"], len(told.missions())) == ("parked", 1)
        assert "notes" in found["reason"]


@pytest.mark.parametrize(("unattended", "state"), [(False, "asking"), (True, "released")])
async def test_what_nobody_watches_asks_unless_its_grant_says_unattended(
    tmp_path: Path, unattended: bool, state: str
) -> None:
    """By what the grant says at the moment when the effect is put into the outbox; the inbox says that it waits."""
    (tmp_path / "notes").mkdir()

    def grant(root: Root) -> None:
        told = ("tester", iso(START))
        made = effect_records.add_capability(root, "notes", "file", str(tmp_path / "notes"), "queryable", told)
        made.unattended = unattended
        roots.connection_of(root).add(made)

    brief = {
        "message": {"receiver": "notes", "selector": "append_", "arguments": ["a.txt", "A line."]}, "grants": ["notes"],
        "origin": {"door": "schedule", "client": "s-1"},
    }  # fmt: skip
    async with world(tmp_path / "home") as told:
        await told.uvm.image.shared.apply(grant)
        assert (await told.uvm.missions.ask(brief))["status"] == "done"
        await told.uvm.releaser.release_all()
        with told.uvm.image.snapshot() as root:
            assert [each["state"] for each in effect_records.list_all_effects(root)] == [state]
        door = Door(told.uvm)
        assert (await door("inbox"))["waiting"] == (not unattended)
        assert (tmp_path / "notes" / "a.txt").exists() == unattended
        if not unattended:
            await door("approve", matching="notes.*")
            await told.uvm.releaser.release_all()
            assert (tmp_path / "notes" / "a.txt").read_text() == "A line.\n"
            assert (await door("inbox"))["waiting"] == 0


async def test_erased_words_are_not_asked(tmp_path: Path) -> None:
    """A question of which words were erased is parked, and so is a reminder."""
    async with world(tmp_path) as told:
        name = await told.add(text=f"What does {MARK} owe me?")
        other = await told.add(text=f"Call {MARK}.", work="remind")
        await told.at(START + HOUR)
        assert told.schedule(name)["state"] == told.schedule(other)["state"] == "parked"
        assert (told.missions(), told.inbox()) == ({}, [])


async def test_a_copied_mind_begins_nothing(tmp_path: Path) -> None:
    """Schedules of a mind from a backup or an export rest until a person lets them go on."""
    async with world(tmp_path) as told:
        name = await told.add()
        await told.uvm.image.shared.apply(lambda root: foreign_minds.disarm(root, iso(START)))
        await told.at(START + 2 * HOUR)
        assert (told.schedule(name)["state"], told.missions()) == ("paused", {})


async def test_the_inbox_is_bounded(tmp_path: Path) -> None:
    """The oldest that were read go first, then the oldest."""
    async with world(tmp_path) as told:
        name = await told.add("every 1 minute", work="remind", text="Breathe.")

        def fill(root: Root) -> None:
            for number in range(1, MOST_ENTRIES + 1):
                at = START + timedelta(minutes=number)
                schedule_records.note_firing(root, None, Firing(name, at, at, None, text="Breathe."))

        await told.uvm.image.shared.apply(fill)
        newest = told.inbox()[0]["due"]
        with told.uvm.image.snapshot() as root:
            entry = next(each for each, kept in schedule_records.list_inbox(root, None) if kept["due"] == newest)
        assert await told.uvm.image.shared.apply(lambda root: schedule_records.mark_read(root, entry, None)) == 1
        with pytest.raises(NotFound):
            await told.uvm.image.shared.apply(lambda root: schedule_records.mark_read(root, entry, "another"))
        await told.at(START + timedelta(minutes=MOST_ENTRIES + 1))
        assert len(told.inbox()) == MOST_ENTRIES
        assert newest not in [each["due"] for each in told.inbox()]
        assert [each["user"] for each in told.inbox() if not each["is_read"]] == ["tester"] * MOST_ENTRIES
