"""The heartbeat: off until somebody resumes it, nothing where nothing changed, and a person goes before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.waiting import until

from batos.autotelic import heartbeat
from batos.autotelic.heartbeat import Allowance, Duty, Expense, Heartbeat, HeartbeatParts
from batos.image.ownership import DOOR
from batos.protocol.errors import Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM


@dataclass
class World:
    """A heartbeat over a mind, with a duty that counts and says what a test tells it to."""

    uvm: UVM
    beats: int = 0
    mark: str = "1"
    power: bool = True
    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)
    steps: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: list[bool] = field(default_factory=list)

    async def count(self, allowance: Allowance) -> str:
        """The duty."""
        self.beats += 1
        return f"beat {self.beats}"

    async def toil(self, allowance: Allowance) -> str:
        """A duty without an end of its own."""
        self.beats += 1
        while allowance.go_on():
            self.steps.set()
            await asyncio.sleep(0)
        self.stopped.append(True)
        return "a part"

    def heart(self, work: Callable[[Allowance], Awaitable[str]] | None = None, *, seconds: float = 100.0) -> Heartbeat:
        """A heartbeat whose duty is this one."""
        duty = Duty("counting", lambda root: self.mark, work or self.count)
        return Heartbeat(
            HeartbeatParts(
                self.uvm.image, lambda: self.now, self.uvm.workers.is_idle, [duty], Expense(seconds, 10, 1_000),
                86_400.0, lambda: self.power, idle=0.0,
            )
        )  # fmt: skip


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    """A mind that nobody asks anything."""
    async with scripted_uvm(home, ScriptedBridge()) as uvm:
        yield World(uvm)


async def test_it_does_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    """Nor after it is paused; that is kept in the image."""
    async with world(tmp_path) as told:
        heart = told.heart()
        assert await heart._beat_if_due() is None
        assert (await heart.turn("ann", on=True))["on"]
        await heart._beat_if_due()
        assert told.beats == 1
        assert heart.describe()["did"] == ["counting: beat 1"]
        assert not (await told.heart().turn("ann", on=False))["on"]
        told.mark = "2"
        await heart._beat_if_due()
        assert told.beats == 1


async def test_where_nothing_changed_nothing_runs(tmp_path: Path) -> None:
    """A second beat leaves a duty out whose mark is as it was; a changed one is done again."""
    async with world(tmp_path) as told:
        heart = told.heart()
        await heart.turn("ann", on=True)
        for mark in ("1", "1", "2", "2"):
            told.mark = mark
            await heart._beat_if_due()
        assert told.beats == 2


async def test_it_waits_for_power_and_for_its_budget(tmp_path: Path) -> None:
    """On a battery it looks again later; what is spent is spent until midnight; `now` asks for neither."""
    async with world(tmp_path) as told:
        heart = told.heart(seconds=0.0)
        await heart.turn("ann", on=True)
        told.power = False
        assert await heart._beat_if_due() == heartbeat._POWER
        told.power = True
        assert await heart._beat_if_due() == 12 * 3600
        assert told.beats == 0
        await heart.beat()
        assert told.beats == 1
        spent = heart.describe()["spent"]
        told.now += timedelta(days=1)
        assert heart.describe()["spent"] == 0 <= spent


async def test_a_question_stops_a_duty(tmp_path: Path) -> None:
    """At its next step; the duty is not done, so it is done again when nobody asks."""
    async with world(tmp_path) as told:
        heart = told.heart(told.toil)
        heart.keep()
        await heart.turn("ann", on=True)
        await told.steps.wait()
        await told.uvm.missions.ask({"text": "Who winds the lamp?", "effort": "reflex"})
        await until(lambda: told.stopped)
        told.steps.clear()
        await told.steps.wait()
        assert told.beats >= 2
        await heart.turn("ann", on=False)
        await heart.job.stop()


async def test_a_duty_that_fails_has_spent_what_it_spent(tmp_path: Path) -> None:
    """It is tried again, within the budget of the day."""
    async with world(tmp_path) as told:

        async def fail(allowance: Allowance) -> str:
            allowance.spend(3, 500)
            raise Refused("there is nothing to do")

        heart = told.heart(fail)
        await heart.turn("ann", on=True)
        for calls in (3, 6):
            with pytest.raises(Refused, match="nothing to do"):
                await heart._beat_if_due()
            assert heart.describe()["calls"] == calls
        assert heart.describe()["did"] == ["counting: it failed"]


async def test_a_mission_of_its_own_stops_nothing(tmp_path: Path) -> None:
    """A duty may ask a model; nobody waits for that, and the time since a person asked runs on."""
    async with world(tmp_path) as told:
        went_on: list[bool] = []

        async def ask(allowance: Allowance) -> str:
            for origin in ({"door": DOOR, "client": "items d-1"}, {"door": "api", "client": "batos"}):
                await told.uvm.missions.ask({"text": "Who winds the lamp?", "effort": "reflex", "origin": origin})
                went_on.append(allowance.go_on())
            return ""

        heart = told.heart(ask)
        asked_at = heart._asked_at
        await heart.turn("ann", on=True)
        await heart._beat_if_due()
        assert (went_on, heart._asked_at > asked_at) == ([True, False], True)


@pytest.mark.parametrize(
    ("supplies", "has_power"),
    [
        ({}, True),
        ({"BAT0": {"type": "Battery"}}, False),
        ({"BAT0": {"type": "Battery"}, "AC": {"type": "Mains", "online": "0"}}, False),
        ({"BAT0": {"type": "Battery"}, "AC": {"type": "Mains", "online": "1"}}, True),
        ({"hid": {"type": "Battery"}, "usb": {"type": "USB", "online": "1"}}, True),
    ],
)
def test_a_machine_on_its_battery_is_known(
    tmp_path: Path, supplies: dict[str, dict[str, str]], has_power: bool
) -> None:
    """By what the system lists; a machine without a list runs on mains power."""
    assert heartbeat.has_power(tmp_path / "none")
    for name, about in supplies.items():
        (tmp_path / name).mkdir()
        for key, value in about.items():
            (tmp_path / name / key).write_text(f"{value}\n")
    assert heartbeat.has_power(tmp_path) is has_power
