"""Schedules through kills, sleep and clocks that are set: moments that are lost, begun twice, or begun at a wrong time.

A year of looks at the clock is lived in each of five zones, with a schedule of each form: the looks are minutes to
hours apart, the machine sleeps for three days, and the clock is set back and forth by hours. Both clock changes are in
it. The moments that there should be are found without the code that is measured: each minute of the year is asked what
a clock on the wall shows.

`lost` are moments that neither had a mission nor were counted as left out, `twice` those that had several missions,
and `wrong_moment` the missions whose moment no clock on the wall shows. Then a process that begins what is due is
killed at each point of each of its commits, on a disk; what the next one finds is counted too.

    python bench/schedule.py [--kills N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from batos.agency import schedule_rules
from batos.agency.records import schedule_records
from batos.agency.records.schedule_records import ScheduleBrief, ScheduleOrder
from batos.image import roots
from batos.image.ids import iso
from batos.testing import DeadlyStorage, ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams
from report import Goal, report

ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo")
#: The rules of each zone: a line as cron has it, the hour and minute of the day (None: all), and the days of the week.
RULES: Final = (
    ("30 2 * * *", 2, 30, range(7)),
    ("0 7 * * 1-5", 7, 0, range(5)),
    ("0 0 * * 0", 0, 0, (6,)),
)
BEGIN: Final = datetime(2027, 1, 1, tzinfo=UTC)
POINTS: Final = ("begun", "voted", "finished")
#: The commits of a process that begins one mission and waits for its answer.
COMMITS: Final = 4
MOMENT: Final = BEGIN + timedelta(hours=1)


def wall_moments(zone: str, hour: int, minute: int, days: Sequence[int], until: datetime) -> Iterator[datetime]:
    """Yield the moments of a time of day by the clock on the wall, whose every minute is looked at.

    On a day on which the clock leaves the time out it is the first minute after that.
    """
    done, moment = set(), BEGIN
    while moment <= until:
        wall = moment.astimezone(ZoneInfo(zone))
        if wall.date() not in done and (wall.hour, wall.minute) >= (hour, minute):
            done.add(wall.date())
            passed = moment > BEGIN or (wall.hour, wall.minute) == (hour, minute)  # else it was before all of this
            if wall.weekday() in days and passed:
                yield moment
        moment += timedelta(minutes=1)


@dataclass
class Life:
    """A mind with its schedules, and the clock that it sees."""

    seed: int
    now: datetime = BEGIN
    uvm: UVM = field(init=False)

    async def add(self, line: str, zone: str) -> str:
        """Plan a question that is its own rule."""
        order = ScheduleOrder(
            "tester", schedule_rules.parse(line, zone, self.now), "ask", line, "", "all", ScheduleBrief()
        )
        return await self.uvm.schedules.add(order)

    def looks(self, until: datetime) -> Iterator[datetime]:
        """Yield what the clock shows at each look: it is mostly right, sometimes set back, and sleeps now and then."""
        chance, real = random.Random(self.seed), self.now
        while real < until:
            hours = chance.choice([0.02, 0.5, 1, 3, 8, 20])
            real = min(until, real + timedelta(hours=72 if chance.random() < 0.02 else hours))
            yield real - timedelta(hours=chance.choice([1, 2, 30])) if chance.random() < 0.1 else real
        yield until

    async def live(self, until: datetime) -> None:
        """Look at the clock until a moment."""
        for shown in self.looks(until):
            self.now = shown
            await self.uvm.schedules._work()
            await asyncio.gather(*map(self.uvm.missions.wait_for_end, tuple(self.uvm.schedules._own)))


async def live_in(zone: str, seed: int, days: int) -> Counter[str]:
    """Return what was lost, begun twice and begun at a wrong time in a zone."""
    life, until = Life(seed), BEGIN + timedelta(days=days)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        async with scripted_uvm(Path(home), ScriptedBridge(), seams=Seams(clock=lambda: life.now)) as life.uvm:
            names = {line: await life.add(line, zone) for line, *_ in RULES}
            await life.live(until)
            with life.uvm.image.snapshot() as root:
                begun = _moments(root)
                skipped = {line: schedule_records.find(root, name)["skipped"] for line, name in names.items()}
    for line, hour, minute, week in RULES:
        wanted = {iso(each) for each in wall_moments(zone, hour, minute, week, until)}
        had = Counter(begun[names[line]])
        found["twice"] += sum(count - 1 for count in had.values())
        found["wrong_moment"] += len(had.keys() - wanted)
        found["lost"] += max(0, len(wanted - had.keys()) - skipped[line])
        found["moments"] += len(wanted)
    return found


def _moments(root: roots.Root) -> dict[str, list[str]]:
    """Return the moments of the missions of each schedule, from the keys that no two missions have."""
    found: dict[str, list[str]] = {each["id"]: [] for each in schedule_records.list_all(root)}
    for _, record in roots.records_of(root):
        if record.brief.value["origin"]["door"] == "schedule":
            name, _, moment = record.brief.value["idempotency_key"].partition(" ")
            found[name].append(moment)
    return found


# -- kills


async def begin_and_die(home: Path, point: str, number: int) -> None:
    """Begin what is due in a home on a disk, and be killed at a point: the process that is killed."""

    seams = Seams(opening=DeadlyStorage.in_home(home), clock=lambda: MOMENT)
    async with scripted_uvm(home, ScriptedBridge(), memory=False, seams=seams) as uvm:
        DeadlyStorage.arm(point, number)
        await uvm.schedules._work()
        await asyncio.gather(*map(uvm.missions.wait_for_end, tuple(uvm.schedules._own)))


async def kill_at(point: str, number: int) -> Counter[str]:
    """Return what a process that was killed at a point left lost, or twice, when the next one has gone on."""
    life = Life(0)
    with tempfile.TemporaryDirectory() as folder:
        home, seams = Path(folder), Seams(clock=lambda: life.now)
        async with scripted_uvm(home, ScriptedBridge(), memory=False, seams=seams) as life.uvm:
            await life.add("0 * * * *", "UTC")
        command = [sys.executable, __file__, "--until-killed", folder, "--point", point, "--number", str(number)]
        child = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        killed = await child.wait() == -signal.SIGKILL
        life.now = MOMENT + timedelta(seconds=5)
        async with scripted_uvm(home, ScriptedBridge(), memory=False, seams=seams) as life.uvm:
            for mission in await life.uvm.missions.recover():
                await life.uvm.missions.begin(mission)
            await life.uvm.schedules._work()
            with life.uvm.image.snapshot() as root:
                names = [name for name, _ in roots.records_of(root)]
            ends = [(await life.uvm.missions.wait_for_end(name))["status"] for name in names]
    done = ends.count("done")
    return Counter(lost=int(done == 0), twice=max(0, len(ends) - 1), kills=int(killed))


# -- all of it


async def measure(kills: int, days: int, zones: Sequence[str]) -> dict[str, int]:
    """Return the figures."""
    found: Counter[str] = Counter(lost=0, twice=0, wrong_moment=0, kills=0)
    for seed, zone in enumerate(zones):
        began, told = time.monotonic(), await live_in(zone, seed, days)
        found += told
        print(f"{zone}: {dict(told)} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    points = [pair for _ in range(kills) for pair in product(POINTS, range(1, COMMITS + 1))][:kills]
    for point, number in points:
        found += await kill_at(point, number)
    return {name: found[name] for name in ("lost", "twice", "wrong_moment", "moments", "kills")}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=24, help="kills, at each point of each commit in turn")
    parser.add_argument("--quick", action="store_true", help="one zone, two weeks and one kill: shape, not figures")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--until-killed", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--point", default="", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if given.until_killed is not None:
        asyncio.run(begin_and_die(given.until_killed, given.point, given.number))
        return 0
    asked = (1, 14, ZONES[:1]) if given.quick else (given.kills, 365, ZONES)
    found = asyncio.run(measure(*asked))
    goals = [Goal(name, found[name], 0, "at_most") for name in ("lost", "twice", "wrong_moment")]
    report({"bench": "schedule", **found}, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
