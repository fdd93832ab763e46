"""Overhead of the kernel in a mission of six calls: wall, CPU, fsyncs and bytes, beside the bare client and LangGraph.

All sides make the calls that one mission of the kernel was recorded making (decompose, three facets at once, weave, one
revision), against one null server, in one process and on one event loop. Rounds are interleaved and each ratio is the
median of the rounds' own ratios, since a machine is never quiet. The kernel's mission is whole: accepted, journaled,
woven, judged, committed and published, everything durable.

    python bench/mission_overhead.py [--quick] [--json FILE] [--rounds 7] [--missions 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, TypeAlias

from bare_side import CALLS, BareSide, MissionCalls, Side
from kernel_side import FSYNCS, QUESTION, KernelSide, fixed_replies
from langgraph_side import MISSING, LangGraphSide, versions
from null_process import NullProcess
from report import Goal, report

LATENCY_MS = 200.0
#: Where `cpu_ms_added`, `fsyncs_per_mission` and `ratio_200ms` are taken: what a server at work looks like.
USUAL = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """Amount that is measured: rounds, and how many missions make a round at each concurrency."""

    rounds: int
    missions: Mapping[int, int]
    slow_rounds: int
    slow_missions: Mapping[int, int]
    growth: int


FULL = Plan(7, {1: 16, 8: 48, 32: 96}, 3, {1: 3, 8: 24, 32: 64}, 1000)
QUICK = Plan(1, {1: 1, 8: 4, 32: 4}, 1, {8: 2}, 4)


@dataclass(frozen=True, slots=True)
class Sample:
    """A round of one side: milliseconds a mission, of wall and of this process's CPU, and fsyncs a mission."""

    wall: float
    cpu: float
    fsyncs: float


@dataclass(slots=True)
class Table:
    """The samples of every side at every concurrency, in the order of the rounds."""

    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=dict)

    def add(self, side: str, concurrent: int, sample: Sample) -> None:
        """Keep a sample."""
        self.samples.setdefault((side, concurrent), []).append(sample)

    def middle(self, side: str, concurrent: int, take: Callable[[Sample], float]) -> float:
        """Return the median over the rounds."""
        return median(take(sample) for sample in self.samples[side, concurrent])

    def ratio(self, side: str, to: str, concurrent: int) -> float:
        """Return the median of wall over wall of the same round."""
        pairs = zip(self.samples[side, concurrent], self.samples[to, concurrent], strict=True)
        return median(one.wall / other.wall for one, other in pairs)

    def ratios(self, side: str, to: str) -> dict[str, float]:
        """Return `ratio` at every concurrency that was measured."""
        return {str(at): round(self.ratio(side, to, at), 3) for name, at in self.samples if name == side}

    def medians(self, take: Callable[[Sample], float]) -> dict[str, dict[str, float]]:
        """Return the median of one figure by side and concurrency."""
        shown: dict[str, dict[str, float]] = {}
        for name, at in self.samples:
            shown.setdefault(name, {})[str(at)] = round(self.middle(name, at, take), 2)
        return shown


_numbers = count(1)

Opened: TypeAlias = tuple[KernelSide, list[Side]]


async def crowd(side: Side, concurrent: int, missions: int) -> None:
    """Run so many missions, so many of them at a time."""
    left = iter(range(missions))

    async def one_after_another() -> None:
        for _ in left:
            await side.mission(next(_numbers))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrent, missions)):
            group.create_task(one_after_another())


async def sample(side: Side, concurrent: int, missions: int) -> Sample:
    """Measure one round of one side."""
    gc.collect()
    fsyncs, cpu, wall = FSYNCS.made, time.process_time(), time.perf_counter()
    await crowd(side, concurrent, missions)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Sample(1000 * wall / missions, 1000 * cpu / missions, (FSYNCS.made - fsyncs) / missions)


async def compare(sides: Sequence[Side], server: NullProcess, rounds: int, sizes: Mapping[int, int]) -> Table:
    """Measure all sides in turn, round after round; every mission must have made its six calls and no other."""
    table = Table()
    for concurrent, missions in sizes.items():
        for side in sides:
            await crowd(side, concurrent, min(concurrent, missions))
        for turn in range(rounds):
            before = (await server.stats())["calls"]
            for side in (*sides[turn % len(sides) :], *sides[: turn % len(sides)]):
                table.add(side.name, concurrent, await sample(side, concurrent, missions))
            made = (await server.stats())["calls"] - before
            if made != CALLS * missions * len(sides):
                raise RuntimeError(f"{missions} missions of {len(sides)} sides made {made} calls")
        walls = {side.name: round(table.middle(side.name, concurrent, lambda one: one.wall), 1) for side in sides}
        print(f"{concurrent:>3} at a time, ms a mission: {walls}", file=sys.stderr, flush=True)
    return table


@asynccontextmanager
async def open_sides(server: NullProcess, folder: Path, concurrent: int) -> AsyncIterator[Opened]:
    """Open the kernel and every side that is installed, over one null server; the kernel makes the recorded mission."""
    async with AsyncExitStack() as stack:
        kernel = await KernelSide.open(server.url, folder / "home", concurrent)
        stack.push_async_callback(kernel.close)
        await kernel.mission(0)
        calls = MissionCalls.from_bodies((await server.recorded_bodies())[-CALLS:])
        sides: list[Side] = [BareSide(server.url, calls), kernel]
        if MISSING is None:
            peer = LangGraphSide(server.url, calls, folder, QUESTION)
            await peer.open()
            sides.append(peer)
        for side in sides:
            if side is not kernel:
                stack.push_async_callback(side.close)
        # Objects that were imported and opened so far are no garbage: no round shall search them.
        gc.collect()
        gc.freeze()
        yield kernel, sides


async def growth(size: Callable[[], int], grow: Callable[[int], Awaitable[None]], missions: int) -> dict[str, Any]:
    """Measure the bytes a mission adds: the slope of a line through the sizes, and the worst point's distance."""
    step = max(1, missions // 20)
    at, sizes = [0], [size()]
    for _ in range(missions // step):
        await grow(step)
        at.append(at[-1] + step)
        sizes.append(size())
    slope, intercept = linear_regression(at, sizes)
    worst = max(abs(there - intercept - slope * x) for x, there in zip(at, sizes, strict=True))
    half = len(at) // 2
    first, second = (sizes[half] - sizes[0]) / at[half], (sizes[-1] - sizes[half]) / (at[-1] - at[half])
    return {
        "missions": at[-1],
        "slope": round(slope, 1),
        "residual": round(worst, 1),
        "residual_share": round(worst / (sizes[-1] - sizes[0]), 4),
        "second_half_over_first": round(second / first, 4),
    }


async def measure(plan: Plan) -> tuple[dict[str, Any], list[Goal]]:
    """Measure everything and return it with the goals."""
    most = max(plan.missions)
    with tempfile.TemporaryDirectory(prefix="batos-bench-") as name:
        folder = Path(name)
        (folder / "fast").mkdir()
        (folder / "slow").mkdir()
        replies = folder / "replies.json"
        replies.write_text(fixed_replies(), encoding="utf-8")
        async with NullProcess.running(replies) as server, open_sides(server, folder / "fast", most) as (kernel, sides):
            table = await compare(sides, server, plan.rounds, plan.missions)
            in_rounds = (await server.stats())["cpu_ms_per_call"]
            alone = await server.own_cost((await server.recorded_bodies())[-CALLS:], plan.missions[USUAL])
            heartbeat = await compare_heartbeat(kernel, plan.rounds, plan.missions[USUAL])
            bytes_grown = await growth(kernel.size, lambda some: crowd(kernel, USUAL, some), plan.growth)
            print(f"bytes: {bytes_grown}", file=sys.stderr, flush=True)
            peer = await _peer_bytes(sides, plan.missions[USUAL])
        async with (
            NullProcess.running(replies, LATENCY_MS) as server,
            open_sides(server, folder / "slow", most) as (_, slow_sides),
        ):
            slow = await compare(slow_sides, server, plan.slow_rounds, plan.slow_missions)
    values = _values(plan, table, slow)
    values.update(
        bytes_per_mission=bytes_grown["slope"],
        bytes_growth=bytes_grown,
        heartbeat_ratio=heartbeat,
        null_server_cpu_ms_per_call=alone,
        # In the rounds it also opens and closes the connections that the bare client's pool gives up at 8 and more.
        null_server_cpu_ms_per_call_in_rounds=in_rounds,
    )
    if MISSING is None:
        values["langgraph"] = {
            "ratio": table.ratios("langgraph", "bare"),
            "ratio_200ms": round(slow.ratio("langgraph", "bare", USUAL), 3),
            "bytes_per_mission": peer,
            "versions": versions(),
        }
    return values, _goals(values, table)


async def compare_heartbeat(kernel: KernelSide, rounds: int, missions: int) -> dict[str, float]:
    """Return wall and CPU of a mission with the heartbeat on over those with it off, by the median of the rounds."""
    found: dict[str, list[float]] = {"wall": [], "cpu": []}
    for turn in range(rounds):
        told: dict[bool, Sample] = {}
        for is_on in (turn % 2 == 0, turn % 2 == 1):
            await kernel.beat(on=is_on)
            told[is_on] = await sample(kernel, USUAL, missions)
        found["wall"].append(told[True].wall / told[False].wall)
        found["cpu"].append(told[True].cpu / told[False].cpu)
    return {name: round(median(ratios), 3) for name, ratios in found.items()}


async def _peer_bytes(sides: Sequence[Side], missions: int) -> float | None:
    for side in sides:
        if isinstance(side, LangGraphSide):
            before = await side.size()
            await crowd(side, USUAL, missions)
            return round((await side.size() - before) / missions, 1)
    return None


def _values(plan: Plan, table: Table, slow: Table) -> dict[str, Any]:
    added = table.middle("kernel", USUAL, lambda one: one.cpu) - table.middle("bare", USUAL, lambda one: one.cpu)
    return {
        "ratio": table.ratios("kernel", "bare"),
        "cpu_ms_added": round(added, 2),
        "fsyncs_per_mission": round(table.middle("kernel", USUAL, lambda one: one.fsyncs), 2),
        "ratio_200ms": round(slow.ratio("kernel", "bare", USUAL), 3),
        "ratio_200ms_by_concurrency": slow.ratios("kernel", "bare"),
        "wall_ms": table.medians(lambda one: one.wall),
        "cpu_ms": table.medians(lambda one: one.cpu),
        "wall_ms_200ms": slow.medians(lambda one: one.wall),
        "calls_per_mission": CALLS,
        "rounds": plan.rounds,
        "missions_per_round": {str(at): missions for at, missions in plan.missions.items()},
    }


def _goals(values: Mapping[str, Any], table: Table) -> list[Goal]:
    at_usual = values["ratio"][str(USUAL)]
    goals = [
        Goal("wall over the bare client's, 8 at a time", at_usual, 2.0),
        Goal("wall over the bare client's, 8 at a time, to call it done", at_usual, 2.5),
        Goal("wall over the bare client's, 200 ms a call", values["ratio_200ms"], 1.03),
        Goal("wall with the heartbeat on over off", values["heartbeat_ratio"]["wall"], 1.02),
        Goal("CPU of the null server, ms a call", values["null_server_cpu_ms_per_call"], 0.1),
        Goal("bytes off a straight line, share of all", values["bytes_growth"]["residual_share"], 0.02),
    ]
    if MISSING is None:
        ahead = table.ratios("kernel", "langgraph")
        goals += [Goal(f"wall over LangGraph's, {at} at a time", ahead[at], 1.0) for at in ahead]
    return goals


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few missions: shape, not speed")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--missions", type=int, default=FULL.growth, help="missions over which growth is measured")
    given = parser.parse_args(arguments)
    if MISSING is not None:
        print(f"LangGraph is not measured: no module {MISSING} (install the extra `bench`)", file=sys.stderr)
    full = Plan(given.rounds, FULL.missions, FULL.slow_rounds, FULL.slow_missions, given.missions)
    values, goals = asyncio.run(measure(QUICK if given.quick else full))
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
