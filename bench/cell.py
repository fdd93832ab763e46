"""Cost of a call in the cell, memory of a thousand waiting ones, and harm that bad methods do to good ones.

`roundtrip_ms_p50`: a method that returns a constant, one after another, with a warm pool. `rss_growth_mb`: 1,000
methods suspended on inference with a pool of two, this process and the workers together, over the memory before.
`kills_recovered`: of so many runs that hang, flood, swell, recur or die (their process is killed from outside), the
share that ended with its limit named; 0 if a run of a good method among them did not give its result (`healthy_lost`).

    python bench/cell.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import Program, prepare
from batos.cell.values import CellLimits, MessageAnswer, Ref, Writes
from batos.guardian.policy import SlotUse
from batos.protocol.errors import CellKilled
from report import Goal, report

TRIVIAL = prepare("def give(self):\n    return 1\n", SlotUse())
ASKS = prepare(
    "async def ask(self, n):\n    reply = await self.infer_(f'{n} about {self.topic}')\n    return [n, reply]\n",
    SlotUse(frozenset({"topic"})),
)
HANGS = prepare("def hang(self):\n    while True:\n        pass\n", SlotUse())
FLOODS = prepare("def flood(self):\n    while True:\n        self.log_('x')\n", SlotUse())
SWELLS = prepare("def swell(self):\n    x = 'ab'\n    while True:\n        x = x + x\n", SlotUse())
RECURS = prepare("def recur(self):\n    def f():\n        return f()\n    return f()\n", SlotUse())
BAD = (HANGS, FLOODS, SWELLS, RECURS)
#: Short, so that a hundred bad runs end in a minute; a good one needs a thousandth of it.
BRIEF = CellLimits(seconds=0.5, turn_seconds=0.3, wall_seconds=2.0, memory=16 << 20)


class Answers:
    """A host that answers `infer_` as it is told, and anything else with nothing."""

    def __init__(self, infer: Callable[[], Awaitable[Any]] | None = None) -> None:
        self._infer = infer

    async def send(
        self, to: Ref | None, selector: str, args: list[Any], kwargs: dict[str, Any], _: Writes
    ) -> MessageAnswer:
        """Answer a message."""
        return MessageAnswer(await self._infer() if selector == "infer_" and self._infer else None)

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Refuse every read: no object has slots."""
        return MessageAnswer()


def workers() -> dict[int, float]:
    """List the worker processes of this one, with their resident memory in MB."""
    found: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            rest = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(rest[1]) == os.getpid():
                found[int(entry.name)] = _resident(entry)
        except OSError:  # it ended meanwhile
            continue
    return found


def _resident(process: Path) -> float:
    return int((process / "statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory() -> float:
    """Return the memory of this process and its workers, in MB."""
    return _resident(Path("/proc/self")) + sum(workers().values())


async def roundtrips(count: int) -> list[float]:
    """Return the milliseconds of each call, warm."""
    cell, host, found = Cell(2), Answers(), []
    for _ in range(20):
        await cell.run(TRIVIAL, MethodCall({}), host)
    for _ in range(count):
        began = time.perf_counter()
        await cell.run(TRIVIAL, MethodCall({}), host)
        found.append((time.perf_counter() - began) * 1000)
    await cell.aclose()
    return found


async def waiting(count: int) -> float:
    """Return how much memory so many suspended methods hold, in MB."""
    cell, gate, asked = Cell(2), asyncio.Event(), asyncio.Event()
    reached = 0

    async def infer() -> str:
        nonlocal reached
        reached += 1
        if reached == count:
            asked.set()
        await gate.wait()
        return "reply"

    async def ready() -> str:
        return "reply"

    view = {"topic": "rain " * 20}
    await asyncio.gather(*(cell.run(ASKS, MethodCall(view, [n]), Answers(ready)) for n in range(100)))
    before = memory()
    host = Answers(infer)
    runs = [asyncio.create_task(cell.run(ASKS, MethodCall(view, [n]), host)) for n in range(count)]
    await asked.wait()
    await asyncio.sleep(0.1)
    grown = memory() - before
    gate.set()
    for n, outcome in enumerate(await asyncio.gather(*runs)):
        if outcome.result != [n, "reply"]:
            raise RuntimeError(f"run {n} gave {outcome.result}")
    await cell.aclose()
    return grown


async def trouble(bad: int, good: int) -> tuple[int, int]:
    """Count (killed with a limit, good runs lost) of bad methods among good ones."""
    cell, host = Cell(2, BRIEF), Answers()
    await cell.run(TRIVIAL, MethodCall({}), host)

    async def healthy() -> bool:
        return (await cell.run(TRIVIAL, MethodCall({}), host)).result == 1

    ills = [asyncio.create_task(_killed(cell, BAD[n % len(BAD)], host)) for n in range(bad - bad // 5)]
    wells = [asyncio.create_task(healthy()) for _ in range(good)]
    lost = [each for each in await asyncio.gather(*wells, return_exceptions=True) if each is not True]
    killed = sum(await asyncio.gather(*ills))
    await cell.aclose()
    return killed + await dying(bad // 5), len(lost)


async def _killed(cell: Cell, program: Program, host: Answers) -> bool:
    try:
        await cell.run(program, MethodCall({}), host)
    except CellKilled:
        return True
    return False


async def dying(count: int) -> int:
    """Return how many runs whose process is killed from outside end as killed, with a good run after each."""
    cell, host, found = Cell(1, CellLimits(turn_seconds=20, seconds=20, wall_seconds=20)), Answers(), 0
    others = set(workers())
    for _ in range(count):
        await cell.run(TRIVIAL, MethodCall({}), host)
        (worker,) = set(workers()) - others
        run = asyncio.create_task(_killed(cell, HANGS, host))
        await asyncio.sleep(0.02)
        os.kill(worker, signal.SIGKILL)
        killed = await run
        found += killed and (await cell.run(TRIVIAL, MethodCall({}), host)).result == 1
    await cell.aclose()
    return found


async def measure(*, quick: bool) -> dict[str, Any]:
    """Return the bench's figures."""
    times = await roundtrips(100 if quick else 2000)
    grown = await waiting(100 if quick else 1000)
    bad, good = (10, 40) if quick else (100, 400)
    killed, lost = await trouble(bad, good)
    return {
        "roundtrip_ms_p50": round(statistics.median(times), 3),
        "roundtrip_ms_p95": round(statistics.quantiles(times, n=20)[-1], 3),
        "rss_growth_mb": round(grown, 2),
        "kills_recovered": killed / bad if not lost else 0.0,
        "bad": bad,
        "healthy": good,
        "healthy_lost": lost,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the document there too")
    asked = parser.parse_args(arguments)
    values = asyncio.run(measure(quick=asked.quick))
    goals = [
        Goal("roundtrip_ms_p50", values["roundtrip_ms_p50"], 1.0),
        Goal("rss_growth_mb", values["rss_growth_mb"], 20.0),
        Goal("kills_recovered", values["kills_recovered"], 1.0, "at_least"),
    ]
    report(values, goals, asked.json)


if __name__ == "__main__":
    main()
