"""Workers that hang, die, flood or are given up are killed and replaced; the healthy notice nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cell.hosting import Answers, method, outcome, soon
from tests.cell.memory import children

from batos.cell.cell import Cell, MethodCall
from batos.cell.limits import CellLimits
from batos.cell.worker_pool import interpreter
from batos.errors import CellKilled, CellMissing, MethodFailed
from batos.events import Events

QUICK = CellLimits(seconds=0.3, turn_seconds=0.2, wall_seconds=1.0, memory=16 << 20)
#: For methods that end by themselves at another limit than time, on a busy machine too.
SLOW = replace(QUICK, seconds=30.0, turn_seconds=30.0, wall_seconds=60.0)
GOOD = method("def good(self, n):\n    return n + 1")
BAD = {
    "time": "def bad(self):\n    while True:\n        pass",
    "memory": "def bad(self):\n    return [0] * 10**8",
    "recursion": "def bad(self):\n    def f():\n        return f()\n    return f()",
    "output": "def bad(self):\n    while True:\n        print('x' * 1000)",
    "messages": "def bad(self):\n    while True:\n        self.log_('info')",
}


@pytest.mark.parametrize(("limit", "source"), BAD.items(), ids=BAD.keys())
async def test_a_limit_kills_the_run_and_its_worker(limit: str, source: str) -> None:
    """The error and the event name the limit, and the next run is served by a process that never met this one."""
    seen: list[Any] = []
    limits = QUICK if limit in ("time", "output") else SLOW
    cell = Cell(1, limits, Events(lambda name, keys: seen.append((name, keys["selector"], keys["limit"]))))
    others = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    before = set(children()) - others
    with pytest.raises(CellKilled) as raised:
        await outcome(cell, method(source), host=Answers({"log_": None}))
    assert raised.value.limit == limit
    assert seen == [("cell.kill", "bad", limit)]
    assert (await outcome(cell, GOOD, MethodCall({}, [2]))).result == 3
    if limit != "messages":  # counted by the kernel, between two turns of a worker that has been given back since
        assert before
        assert not before & set(children())
    await cell.aclose()


async def test_a_method_cannot_catch_its_limits() -> None:
    """Catching everything for ever is killed like anything else."""
    cell = Cell(1, QUICK)
    source = """
        def bad(self):
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        """
    with pytest.raises(CellKilled):
        await outcome(cell, method(source))
    await cell.aclose()


def _running_worker(before: set[int]) -> int:
    (found,) = set(children()) - before
    return found


@pytest.mark.parametrize(("blow", "limit"), [(signal.SIGKILL, "died"), (signal.SIGSTOP, "hang")])
async def test_a_worker_that_dies_or_hangs_is_replaced(blow: signal.Signals, limit: str) -> None:
    """A process that is killed from outside, or stops in its tracks, fails its run alone."""
    cell = Cell(1, CellLimits(seconds=20, turn_seconds=20, wall_seconds=0.5))
    before = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    worker = _running_worker(before)
    run = asyncio.create_task(outcome(cell, method(BAD["time"])))
    await asyncio.sleep(0.1)
    os.kill(worker, blow)
    with pytest.raises(CellKilled) as raised:
        await run
    assert raised.value.limit == limit
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    assert worker not in children()
    await cell.aclose()


async def test_a_worker_that_dies_while_its_run_waits_is_a_death_like_any() -> None:
    """What is to be put away is gone with its process: the run is killed, told as died, and the next is served."""
    seen: list[Any] = []
    cell = Cell(1, events=Events(lambda name, keys: seen.append((name, keys["limit"]))))
    before = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    worker = _running_worker(before)

    async def blow() -> None:
        os.kill(worker, signal.SIGKILL)
        await asyncio.Event().wait()

    with pytest.raises(CellKilled) as raised:
        await outcome(cell, method("def waits(self):\n    return self.blow_()"), host=Answers({"blow_": blow}))
    assert (raised.value.limit, seen) == ("died", [("cell.kill", "died")])
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    await cell.aclose()


async def test_a_worker_that_died_idle_is_not_missed() -> None:
    """Whoever comes next gets another."""
    cell = Cell(1)
    before = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    os.kill(_running_worker(before), signal.SIGKILL)
    await asyncio.sleep(0.05)
    assert (await outcome(cell, GOOD, MethodCall({}, [2]))).result == 3
    await cell.aclose()


async def test_bad_methods_cost_the_good_nothing() -> None:
    """Hanging, flooding and dying methods among good ones: every good one has its result."""
    cell = Cell(2, QUICK)
    bad = [method(BAD[limit]) for limit in ("memory", "messages", "output", "recursion", "time")]
    runs: list[asyncio.Task[Any]] = []
    for n in range(60):
        program = bad[n // 4 % 5] if n % 4 == 0 else GOOD
        arguments = MethodCall({}, [] if n % 4 == 0 else [n])
        runs.append(asyncio.create_task(outcome(cell, program, arguments, Answers({"log_": None}))))
    found = await asyncio.gather(*runs, return_exceptions=True)
    for n, each in enumerate(found):
        if n % 4 == 0:
            assert isinstance(each, CellKilled)
        else:
            assert not isinstance(each, BaseException)
            assert each.result == n + 1
    await cell.aclose()


async def test_a_cancelled_run_loses_no_worker() -> None:
    """Cancelled while it computes, while it waits, and before it begins; the only worker serves on."""
    cell = Cell(1, CellLimits(turn_seconds=20, seconds=20, wall_seconds=20))
    never = asyncio.Event()
    waits = method("async def ask(self):\n    return await self.infer_()")
    for _ in range(3):
        busy = asyncio.create_task(outcome(cell, method(BAD["time"])))
        queued = asyncio.create_task(outcome(cell, GOOD, MethodCall({}, [1])))
        await asyncio.sleep(0.05)
        queued.cancel()
        busy.cancel()
        waiting = asyncio.create_task(outcome(cell, waits, host=Answers({"infer_": never.wait})))
        await asyncio.gather(busy, queued, return_exceptions=True)
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert busy.cancelled()
        assert queued.cancelled()
        assert waiting.cancelled()
    async with asyncio.timeout(10):
        assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    await cell.aclose()


async def test_nothing_is_started_before_the_first_run(tmp_path: Path) -> None:
    """Making a cell loads nothing and starts nothing; closing one that never ran is nothing too."""
    loaded: list[str] = []

    def load() -> ModuleType:
        loaded.append("loaded")
        return interpreter()

    before = set(children())
    cell = Cell(2, load=load)
    await soon()
    assert not loaded
    assert set(children()) == before
    await outcome(cell, GOOD, MethodCall({}, [1]))
    assert loaded == ["loaded"]
    await cell.aclose()
    assert set(children()) == before
    await Cell(2).aclose()


async def test_a_closed_cell_runs_nothing() -> None:
    """Runs after the end, and those that were still queued, are told so."""
    cell = Cell(1, QUICK)
    await outcome(cell, GOOD, MethodCall({}, [1]))
    busy = asyncio.create_task(outcome(cell, method(BAD["time"])))
    queued = asyncio.create_task(outcome(cell, GOOD, MethodCall({}, [1])))
    await asyncio.sleep(0.05)
    await cell.aclose()
    with pytest.raises(CellMissing):
        await queued
    with pytest.raises(MethodFailed):
        await busy
    with pytest.raises(CellMissing, match="closed"):
        await outcome(cell, GOOD, MethodCall({}, [1]))


def _no_bindings() -> ModuleType:
    raise ImportError("No module named 'pydantic_monty'")


async def test_without_the_bindings_nothing_runs() -> None:
    """No fallback: the run fails with the remedy."""
    with pytest.raises(CellMissing, match="cannot be loaded"):
        await outcome(Cell(1, load=_no_bindings), GOOD, MethodCall({}, [1]))


@pytest.mark.parametrize("text", [None, "", "#!/bin/sh\nexit 3\n", "#!/bin/sh\necho no\n"])
async def test_without_a_working_binary_nothing_runs(tmp_path: Path, text: str | None) -> None:
    """Missing, no program, one that ends at once, one that says the wrong thing; it may be tried again later."""
    binary = tmp_path / "monty"
    if text is not None:
        binary.write_text(text, encoding="utf-8")
        binary.chmod(binary.stat().st_mode | (stat.S_IXUSR if text else 0))
    cell = Cell(1, CellLimits(wall_seconds=1.0), binary=binary)
    for _ in range(2):
        with pytest.raises(CellMissing):
            await outcome(cell, GOOD, MethodCall({}, [1]))
    await cell.aclose()
