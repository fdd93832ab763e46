"""Workers that hang, die, flood or are given up are killed and replaced; the healthy notice nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cell.hosting import PATIENT, Answers, method, outcome, soon
from tests.cell.memory import children
from tests.waiting import a_moment, until

from batos.cell.cell import Cell, MethodCall
from batos.cell.values import CellLimits
from batos.cell.worker_pool import interpreter
from batos.events import Events
from batos.protocol.errors import CellKilled, CellMissing, MethodFailed

SMALL = replace(PATIENT, memory=16 << 20)
#: For methods that would never end.
QUICK = replace(SMALL, seconds=0.3, turn_seconds=0.2)  # any pace: it is to run out
GOOD = method("def good(self, n):\n    return n + 1")
BAD = {
    "time": "def bad(self):\n    while True:\n        pass",
    "memory": "def bad(self):\n    return [0] * 10**8",
    "recursion": "def bad(self):\n    def f():\n        return f()\n    return f()",
    "output": "def bad(self):\n    while True:\n        print('x' * 1000)",
    "messages": "def bad(self):\n    while True:\n        self.log_('info')",
}
#: Says that it has begun, and never ends.
ENDLESS = method("def bad(self):\n    self.begun_()\n    while True:\n        pass")


def limit_from_now(cell: Cell, limits: CellLimits) -> None:
    """Give the runs that begin from now on other limits."""
    cell._limits = cell._workers._limits = limits


class Beginning:
    """A host that is told when an endless method has begun, and does something before it answers."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.has_begun, self.then = asyncio.Event(), then
        self.answers = Answers({"begun_": self.begin})

    async def begin(self) -> None:
        """Take notice."""
        self.has_begun.set()
        self.then()


@pytest.mark.parametrize(("limit", "source"), BAD.items(), ids=BAD.keys())
async def test_a_limit_kills_the_run_and_its_worker(limit: str, source: str) -> None:
    """The error and the event name the limit, and the next run is served by a process that never met this one."""
    seen: list[Any] = []
    cell = Cell(1, SMALL, Events(lambda name, keys: seen.append((name, keys["selector"], keys["limit"]))))
    others = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    before = set(children()) - others
    limit_from_now(cell, QUICK if limit in ("time", "output") else SMALL)
    with pytest.raises(CellKilled) as raised:
        await outcome(cell, method(source), host=Answers({"log_": None}))
    limit_from_now(cell, SMALL)
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
    cell, before = Cell(1, PATIENT), set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    worker = _running_worker(before)
    impatient = replace(PATIENT, wall_seconds=0.5)  # any pace: of one that hangs it is to run out
    host = Beginning(lambda: limit_from_now(cell, impatient if limit == "hang" else PATIENT))
    run = asyncio.create_task(outcome(cell, ENDLESS, host=host.answers))
    await host.has_begun.wait()
    await a_moment()
    with suppress(ProcessLookupError):  # it had no time left
        os.kill(worker, blow)
    with pytest.raises(CellKilled) as raised:
        await run
    assert raised.value.limit == limit
    limit_from_now(cell, PATIENT)
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    assert worker not in children()
    await cell.aclose()


async def test_a_worker_that_dies_while_its_run_waits_is_a_death_like_any() -> None:
    """What is to be put away is gone with its process: the run is killed, told as died, and the next is served."""
    seen: list[Any] = []
    cell = Cell(1, PATIENT, Events(lambda name, keys: seen.append((name, keys["limit"]))))
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
    cell = Cell(1, PATIENT)
    before = set(children())
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    worker = _running_worker(before)
    os.kill(worker, signal.SIGKILL)
    await until(lambda: worker not in children(), "the end of the worker")
    assert (await outcome(cell, GOOD, MethodCall({}, [2]))).result == 3
    await cell.aclose()


async def test_bad_methods_cost_the_good_nothing() -> None:
    """Hanging, flooding and dying methods among good ones: every good one has its result."""
    # A good one has its result at once; only that of the endless ones runs out.
    cell = Cell(2, replace(SMALL, seconds=2.0, turn_seconds=2.0))  # any pace: a good one needs a thousandth of it
    bad = [method(BAD[limit]) for limit in ("memory", "messages", "output", "recursion", "time")]
    runs: list[asyncio.Task[Any]] = []
    for n in range(20):
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
    cell = Cell(1, PATIENT)
    asked = asyncio.Event()

    async def infer() -> None:
        asked.set()
        await asyncio.Event().wait()

    waits = method("async def ask(self):\n    return await self.infer_()")
    for _ in range(3):
        host = Beginning()
        busy = asyncio.create_task(outcome(cell, ENDLESS, host=host.answers))
        queued = asyncio.create_task(outcome(cell, GOOD, MethodCall({}, [1])))
        await host.has_begun.wait()
        await soon()
        queued.cancel()
        busy.cancel()
        asked.clear()
        waiting = asyncio.create_task(outcome(cell, waits, host=Answers({"infer_": infer})))
        await asyncio.gather(busy, queued, return_exceptions=True)
        await asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert busy.cancelled()
        assert queued.cancelled()
        assert waiting.cancelled()
    assert (await outcome(cell, GOOD, MethodCall({}, [1]))).result == 2
    await cell.aclose()


async def test_nothing_is_started_before_the_first_run(tmp_path: Path) -> None:
    """Making a cell loads nothing and starts nothing; closing one that never ran is nothing too."""
    loaded: list[str] = []

    def load() -> ModuleType:
        loaded.append("loaded")
        return interpreter()

    before = set(children())
    cell = Cell(2, PATIENT, load=load)
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
    cell, host, before = Cell(1, PATIENT), Beginning(), set(children())
    await outcome(cell, GOOD, MethodCall({}, [1]))
    worker = _running_worker(before)
    busy = asyncio.create_task(outcome(cell, ENDLESS, host=host.answers))
    queued = asyncio.create_task(outcome(cell, GOOD, MethodCall({}, [1])))
    await host.has_begun.wait()
    await soon()
    closing = asyncio.create_task(cell.aclose())
    await soon()
    os.kill(worker, signal.SIGKILL)  # it ends whatever works last
    await closing
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
    cell = Cell(1, CellLimits(wall_seconds=1.0), binary=binary)  # any pace: what does not answer is missing too
    for _ in range(2):
        with pytest.raises(CellMissing):
            await outcome(cell, GOOD, MethodCall({}, [1]))
    await cell.aclose()
