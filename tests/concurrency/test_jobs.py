"""Jobs: no wake is lost, no run is beside another, what fails is tried again, and a stop leaves nothing half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import sampled_from
from tests.waiting import HANG

from batos.concurrency.jobs import Job, Signals
from batos.protocol.errors import DiskFull

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class ManualTimer:
    """A clock that a test sets, and what is to be called at its times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._handles: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        """The time."""
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        """Keep it until the clock is set to that time."""
        handle = asyncio.TimerHandle(when, callback, (), asyncio.get_running_loop())
        self._handles.append(handle)
        return handle

    def due(self) -> list[asyncio.TimerHandle]:
        """What is to be called, the next one first."""
        left = [each for each in self._handles if not each.cancelled()]
        return sorted(left, key=lambda each: each.when())

    async def go(self, seconds: float) -> None:
        """Set the clock forward, and let what is due begin."""
        end = self.now + seconds
        while (due := self.due()) and due[0].when() <= end:
            self.now = max(self.now, due[0].when())
            self._handles.remove(due[0])
            due[0]._run()
            await breathe()
        self.now = end


async def breathe() -> None:
    """Let tasks go as far as they can."""
    for _ in range(8):
        await asyncio.sleep(0)


class Work:
    """A run that goes on until it is let, with what it is to come to."""

    def __init__(self) -> None:
        self.begun = self.beside = self.most = self.cancelled = 0
        self.may = asyncio.Event()
        self.error: Exception | None = None
        self.again: float | None = None

    async def __call__(self) -> float | None:
        """One run."""
        self.begun += 1
        self.beside += 1
        self.most = max(self.most, self.beside)
        try:
            await self.may.wait()
            if self.error is not None:
                raise self.error
            return self.again
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.beside -= 1


class JobLaws(RuleBasedStateMachine):
    """Wakes, ends, failures, time and stops in any order, beside what a reader of the laws expects."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.timer, self.work = ManualTimer(), Work()
        self.job = Job("law", self.work, retry=(1.0, 4.0), ends_itself=True)
        self.here = True
        self.job.may_run = lambda: self.here
        self.started = self.stopped = False
        #: How many runs had begun at the newest wake; without one it owes none.
        self.seen = -1

    def _do(self, what: Callable[[], object]) -> None:
        async def step() -> None:
            what()
            await breathe()
            await self.timer.go(0.0)

        self.loop.run_until_complete(step())

    @precondition(lambda self: not self.started and not self.stopped)
    @rule()
    def start(self) -> None:
        """A wake before it counts."""
        self.started = True
        self._do(lambda: self.job.start(self.timer))

    @precondition(lambda self: not self.stopped)
    @rule()
    def wake(self) -> None:
        """Something happened."""
        self.seen = self.work.begun
        self._do(lambda: self.job.wake(0.0))

    @precondition(lambda self: self.work.beside)
    @rule(error=sampled_from([None, RuntimeError("odd"), DiskFull("no room")]))
    def end(self, error: Exception | None) -> None:
        """The run under way comes to its end, and one that raised is to be tried again."""
        self.work.error = error
        self.work.may.set()

        async def step() -> None:
            await breathe()
            self.work.may.clear()
            self.work.error = None
            await self.timer.go(0.0)

        self.loop.run_until_complete(step())
        if error is not None and not self.work.beside and self.here:
            assert self.timer.due()[0].when() <= self.timer.now + 4.0, "a failure was dropped"

    @rule(seconds=sampled_from([0.5, 1.0, 5.0]))
    def pass_time(self, seconds: float) -> None:
        """Nothing is due that was not asked for."""
        expected = bool(self.timer.due()) and self.timer.due()[0].when() <= self.timer.now + seconds
        before = self.work.begun
        self.loop.run_until_complete(self.timer.go(seconds))
        assert self.work.begun - before == (1 if expected and self.here else 0)

    @rule()
    def go_elsewhere(self) -> None:
        """Another node publishes."""
        self.here = False

    @rule()
    def come_here(self) -> None:
        """This node publishes, and what was held runs."""
        self.here = True
        self._do(self.job.release)

    @precondition(lambda self: not self.stopped)
    @rule()
    def stop(self) -> None:
        """It waits for the run under way, which is not cancelled."""
        self.stopped = True

        async def step() -> None:
            stopping = asyncio.ensure_future(self.job.stop())
            await breathe()
            assert stopping.done() == (not self.work.beside)
            self.work.may.set()
            await stopping
            self.work.may.clear()

        self.loop.run_until_complete(step())
        assert (self.work.beside, self.work.cancelled, self.timer.due()) == (0, 0, [])

    @invariant()
    def no_wake_is_lost(self) -> None:
        """Whoever woke it gets a run that began after that, as soon as none is under way and this node may."""
        assert self.work.most <= 1
        is_owed = self.work.begun <= self.seen
        if is_owed and self.started and not self.stopped and not self.work.beside and self.here:
            assert self.timer.due(), "a wake was lost"

    def teardown(self) -> None:
        """End what is under way."""
        self.work.may.set()
        self.loop.run_until_complete(self.job.stop())
        self.loop.close()


TestJobLaws = JobLaws.TestCase
TestJobLaws.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


async def test_wakes_within_its_pause_are_one_run() -> None:
    """And without a wake there is none."""
    timer, work = ManualTimer(), Work()
    work.may.set()
    job = Job("many", work, gather=5.0)
    job.start(timer)
    await timer.go(60.0)
    assert work.begun == 0
    job.wake()
    await timer.go(4.0)
    job.wake()
    await timer.go(0.9)
    assert work.begun == 0
    await timer.go(0.1)
    assert work.begun == 1
    await timer.go(60.0)
    assert work.begun == 1


async def test_what_fails_is_tried_less_and_less_often_and_anew_after_a_success() -> None:
    """The pause is doubled each time up to the longest, and a run that succeeds says when the next one is."""
    timer, work = ManualTimer(), Work()
    work.may.set()
    work.error = DiskFull("no room")
    job = Job("failing", work, retry=(1.0, 4.0))
    job.start(timer)
    job.wake()
    begun = []
    for _ in range(12):
        await timer.go(1.0)
        begun.append(work.begun)
    assert begun == [2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5]
    assert (job.line(NOW)["state"], job.line(NOW)["reason"]) == ("failed", "no room")
    work.error, work.again = None, 60.0
    await timer.go(3.0)
    assert job.line(NOW)["state"] == "resting"
    assert job.line(NOW)["next"] == "2026-03-01T12:01:00+00:00"
    work.error = DiskFull("no room")
    await timer.go(60.0)
    begun_before = work.begun
    await timer.go(1.0)
    assert work.begun == begun_before + 1, "the pauses begin anew"


async def test_a_run_beyond_its_budget_is_left_and_tried_again() -> None:
    """It says so, and holds up nothing."""
    work = Work()
    job = Job("endless", work, budget=0.01)
    job.start()
    async with asyncio.timeout(HANG):
        await job.finish()
    assert (work.cancelled, job.line(NOW)["state"], job.line(NOW)["next"] is not None) == (1, "failed", True)
    await job.stop()


@pytest.mark.parametrize("ends_itself", [True, False])
async def test_a_stop_waits_for_the_run_and_for_the_last_one(ends_itself: bool) -> None:
    """What was not done by then is done once more; nothing begins afterwards."""
    work = Work()
    job = Job("last", work, ends_itself=ends_itself, runs_last=True)
    job.start()
    job.wake()
    await breathe()
    assert (work.begun, job.line(NOW)["state"]) == (1, "running")
    stopping = asyncio.ensure_future(job.stop())
    await breathe()
    assert not stopping.done()
    work.may.set()
    await stopping
    assert (work.begun, work.cancelled) == (2, 0 if ends_itself else 1)
    job.wake()
    await job.finish()
    assert (work.begun, job.line(NOW)["state"]) == (2, "stopped")


async def test_who_waits_for_it_hears_of_the_last_run_that_was_due() -> None:
    """Also of a wake that came meanwhile."""
    work = Work()
    job = Job("waited", work)
    job.start()
    waiting = asyncio.ensure_future(job.finish())
    await breathe()
    job.wake()
    work.may.set()
    await waiting
    assert work.begun == 2
    await job.stop()


async def test_what_another_node_publishes_is_held_until_this_one_does() -> None:
    """The wake is kept for then."""
    timer, work, here = ManualTimer(), Work(), False
    work.may.set()
    job, signals = Job("shared", work, may_run=lambda: here), Signals()
    job.obey(signals)
    job.start(timer)
    signals.published.give()
    await timer.go(9.0)
    assert (work.begun, job.line(NOW)["state"]) == (0, "resting")
    job.wake()
    await timer.go(9.0)
    assert (work.begun, job.line(NOW)["state"]) == (0, "held")
    here = True
    signals.published.give()
    await timer.go(0.0)
    assert (work.begun, job.line(NOW)["state"]) == (1, "resting")
