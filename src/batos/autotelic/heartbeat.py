"""The heartbeat: work that the mind gives itself when something changed and nobody asks, within a day's budget."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from persistent.mapping import PersistentMapping

from batos.autotelic.curator import CurationWish, Curator
from batos.concurrency.jobs import Job
from batos.image import ownership, roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.protocol.motion_documents import HeartbeatDocument
from batos.records import own_briefs

#: Seconds without a mission after which nobody asks.
IDLE: Final = 600.0
#: Seconds until a machine on its battery is looked at again.
_POWER: Final = 600.0
#: The most regions of memories that one beat folds.
_REGIONS: Final = 100
_DAY: Final = 86_400.0
#: Where Linux lists what a machine gets its power from.
SUPPLIES: Final = Path("/sys/class/power_supply")


#: Tests if a duty may go on: nobody asks, and the day's seconds are not spent.
GoOn: TypeAlias = Callable[[], bool]


class Expense(NamedTuple):
    """The seconds, calls and tokens that beats spent, or may spend a day."""

    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0


UNLIMITED: Final = Expense(math.inf, sys.maxsize, sys.maxsize)


@dataclass(slots=True)
class Allowance:
    """The limits of a duty: it goes on while nobody asks and the day's budget lasts."""

    may_go_on: GoOn = lambda: True
    left: Expense = UNLIMITED
    calls: int = 0
    tokens: int = 0

    def go_on(self) -> bool:
        """Test if nobody asks and the seconds are not spent."""
        return self.may_go_on()

    def may_ask(self) -> bool:
        """Test if a model may be asked too."""
        return self.go_on() and self.calls < self.left.calls and self.tokens < self.left.tokens

    def spend(self, calls: int, tokens: int) -> None:
        """Count calls that were made, and their tokens."""
        self.calls += calls
        self.tokens += tokens


@dataclass(frozen=True, slots=True)
class Duty:
    """Work of a beat. `mark` tells what it would look at: where that is as it was, the duty is left out.

    `work` does as much of it as it may, and returns what it did, in words; "" if there was nothing to do.
    """

    name: str
    mark: Callable[[Root], str]
    work: Callable[[Allowance], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class HeartbeatParts:
    """The parts of a heartbeat: `budget` is that of a day, `every` the longest time in seconds between two beats."""

    image: LivingImage
    clock: Callable[[], datetime]
    is_idle: Callable[[], bool]
    duties: Sequence[Duty]
    budget: Expense
    every: float
    has_power: Callable[[], bool]
    idle: float = IDLE


class Heartbeat:
    """Does its duties on one node of several; a person's question stops it within a duty's next step.

    Off until somebody resumes it. A process that is killed leaves what its duties wrote, and the next beat goes on.
    """

    def __init__(self, parts: HeartbeatParts) -> None:
        self._parts = parts
        self._asked_at = time.monotonic()
        #: The times that it was told to leave what it does; a beat goes on while that is as it was.
        self._told = 0
        self._duties = list(parts.duties)
        self._working = asyncio.Lock()
        self.job = Job("heartbeat", self._beat_if_due, lambda: parts.image.publishing.is_here, parts.idle)
        for signal in (parts.image.signals.asked, parts.image.signals.begun):
            signal.call(self._heed)
        parts.image.signals.answered.call(lambda *_mission: self.job.wake())
        parts.image.signals.remembered.call(self.job.wake)

    def keep(self) -> None:
        """Start it, as far as it is on; for a process that stays to work."""
        self.job.start()
        self.job.wake()

    def _heed(self, mission: str) -> None:
        """Give way to a mission, unless a duty asks it, as the mind's own."""
        if not (self._working.locked() and self._is_own(mission)):  # a look at each mission would cost each of them
            self.heed_person()

    def heed_person(self) -> None:
        """Give way to a person's question; it counts from now on how long nobody has asked."""
        self._asked_at = time.monotonic()
        self.give_way()

    def _is_own(self, mission: str) -> bool:
        with self._parts.image.snapshot() as root:
            record = roots.find_record(root, mission)
            return record is not None and ownership.is_own_work(record)

    def add(self, duty: Duty) -> None:
        """Add a duty behind the others, in the place of one of its name."""
        self._duties = [*(each for each in self._duties if each.name != duty.name), duty]

    def give_way(self) -> None:
        """Leave what it does at the next step."""
        self._told += 1

    @asynccontextmanager
    async def resting(self) -> AsyncIterator[None]:
        """End what it does, as an erasure has to, and begin nothing meanwhile.

        Entered before anything that a duty may wait for is taken.
        """
        self.give_way()
        async with self._working:
            yield

    def describe(self, user: str | None = None) -> HeartbeatDocument:
        """Return whether it beats, when it last did and what, what it spent today, and what stands, but for a guest."""
        with self._parts.image.snapshot() as root:
            told = _document(root, self._parts.budget, iso(self._parts.clock()))
            return {**told, "alarms": [] if ownership.is_guest(user) else own_briefs.list_standing(root)}

    async def turn(self, by: str, *, on: bool) -> HeartbeatDocument:
        """Let it beat from now on, or no more."""
        at = iso(self._parts.clock())
        await self._parts.image.shared.apply(lambda root: root[roots.HEARTBEAT].update(on=on, by=by, at=at))
        if not on:
            self.give_way()
        self.job.wake()
        return await asyncio.to_thread(self.describe)

    async def beat(self) -> HeartbeatDocument:
        """Do the duties now, because a person asks for it, whatever changed and was spent."""
        told = self._told
        await self._do(self._duties, Allowance(lambda: self._told == told, self._parts.budget))
        return await asyncio.to_thread(self.describe)

    async def _beat_if_due(self) -> float | None:
        """Do what is due if it is on, nobody asks and there is power; return when to look again."""
        parts, told = self._parts, self._told
        if parts.image.refusing is not None:
            return None
        found = await asyncio.to_thread(self.describe)
        if not found["on"]:
            return None
        quiet = time.monotonic() - self._asked_at
        if not parts.is_idle() or quiet < parts.idle:
            return max(1.0, parts.idle - quiet)
        if not parts.has_power():
            return _POWER
        left = _subtract_spent(parts.budget, found)
        if left.seconds <= 0:
            return _seconds_to_midnight(parts.clock())
        due = await asyncio.to_thread(self._find_due)
        begun = time.monotonic()
        await self._do(due, Allowance(lambda: self._told == told and time.monotonic() - begun < left.seconds, left))
        return parts.every if self._told == told else parts.idle

    def _find_due(self) -> list[Duty]:
        """List the duties of which something changed since they were done."""
        with self._parts.image.snapshot() as root:
            seen: Mapping[str, str] = root[roots.HEARTBEAT].get("seen", {})
            return [each for each in self._duties if seen.get(each.name) != each.mark(root)]

    async def _do(self, duties: Sequence[Duty], allowance: Allowance) -> None:
        """Do duties one after another, and write down after each what it did and took."""
        async with self._working:
            for duty in duties:
                if not allowance.go_on():
                    return
                begun, before = time.monotonic(), (allowance.calls, allowance.tokens)
                failure: Exception | None = None
                try:
                    did = await duty.work(allowance)
                except Exception as error:  # raised below, when what it has cost is written down
                    did, failure = "it failed", error
                taken = Expense(time.monotonic() - begun, allowance.calls - before[0], allowance.tokens - before[1])
                whole = failure is None and allowance.go_on()
                told = partial(_note, duty=duty, did=did, taken=taken, at=iso(self._parts.clock()), whole=whole)
                await self._parts.image.shared.apply(told)
                if failure is not None:
                    raise failure


def _note(root: Root, duty: Duty, did: str, taken: Expense, at: str, *, whole: bool) -> None:
    """Write down what a duty did, what it spent and when it ended; `whole`: all of it was done."""
    kept = root[roots.HEARTBEAT]
    before = _read_expense(kept, at)
    lines: list[str] = [line for line in kept.get("did", ()) if not line.startswith(f"{duty.name}: ")]
    kept.update(
        day=at[:10],
        spent=before.seconds + taken.seconds,
        calls=before.calls + taken.calls,
        tokens=before.tokens + taken.tokens,
        ran=at,
        did=(*lines, f"{duty.name}: {did or 'nothing to do'}"),
    )
    if whole:  # as it is now: its own changes are none that it has to look at again
        kept["seen"] = {**kept.get("seen", {}), duty.name: duty.mark(root)}


def _read_expense(kept: PersistentMapping[str, Any], now: str) -> Expense:
    """Return what was spent today."""
    if kept.get("day") != now[:10]:
        return Expense()
    return Expense(kept.get("spent", 0.0), kept.get("calls", 0), kept.get("tokens", 0))


def _document(root: Root, budget: Expense, now: str) -> HeartbeatDocument:
    kept = root.get(roots.HEARTBEAT) or PersistentMapping()
    spent = _read_expense(kept, now)
    return HeartbeatDocument(
        on=bool(kept.get("on")),
        by=kept.get("by"),
        ran=kept.get("ran"),
        did=list(kept.get("did", ())),
        spent=round(spent.seconds, 3),
        budget=budget.seconds,
        calls=spent.calls,
        most_calls=budget.calls,
        tokens=spent.tokens,
        most_tokens=budget.tokens,
        alarms=[],
    )


def _subtract_spent(budget: Expense, told: HeartbeatDocument) -> Expense:
    return Expense(budget.seconds - told["spent"], budget.calls - told["calls"], budget.tokens - told["tokens"])


def _seconds_to_midnight(now: datetime) -> float:
    return _DAY - (now.hour * 3600 + now.minute * 60 + now.second)


def has_power(folder: Path = SUPPLIES) -> bool:
    """Test if the machine runs on mains power; one that lists no supply does."""
    try:
        supplies = {each.name: (_read(each / "type"), _read(each / "online")) for each in folder.iterdir()}
    except OSError:
        return True
    mains = [online for kind, online in supplies.values() if kind in ("Mains", "USB")]
    has_battery = any(kind == "Battery" for kind, _ in supplies.values())
    return "1" in mains or not has_battery


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def curating(curator: Curator, cold_days: float, clock: Callable[[], datetime]) -> Duty:
    """Return the duty to fold what nobody has recalled for long, or what says the same, by the rule alone.

    Memories grow cold without a change: each day is looked at once.
    """

    async def work(allowance: Allowance) -> str:
        wish = CurationWish(None, cold_days, _REGIONS, by_rule=True, go_on=allowance.go_on)
        folded = (await curator.curate(wish))["regions"]
        return f"{len(folded)} region{'s' * (len(folded) != 1)} of memories folded" if folded else ""

    return Duty("curator", lambda root: f"{root[roots.MEMORIES]['change']} {iso(clock())[:10]}", work)
