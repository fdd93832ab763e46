"""Background work: a job runs when woken, never twice at once, again later if it fails; and deadlines of missions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, ParamSpec, Protocol

import structlog

from batos.protocol.errors import TimedOut, message_of
from batos.protocol.server_documents import JobLine

_log = structlog.get_logger("batos.jobs")

P = ParamSpec("P")

#: Seconds before a run that failed is tried again: at first, doubled each time, and at most.
RETRY: Final = (1.0, 300.0)


class Timer(Protocol):
    """Calls back at a time; every event loop is one."""

    def time(self) -> float:
        """Return the time in seconds."""
        ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        """Call back at a time, unless the handle is cancelled before."""
        ...


class Signal(Generic[P]):
    """Calls who acts on something that happened; events are for those who only watch."""

    def __init__(self) -> None:
        self._then: list[Callable[P, object]] = []

    def call(self, then: Callable[P, object]) -> Callable[[], None]:
        """Call something each time from now on; return what ends that."""
        self._then.append(then)
        return lambda: self._then.remove(then)

    def give(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all who act on it, in the order in which they came."""
        for then in tuple(self._then):
            then(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of one image, each given on the event loop right after the commit that it is about."""

    #: A mission was accepted.
    asked: Signal[[str]] = field(default_factory=Signal)
    #: A mission begins to run.
    begun: Signal[[str]] = field(default_factory=Signal)
    #: A mission is done; its id, and its conversation if it has one.
    answered: Signal[[str, str | None]] = field(default_factory=Signal)
    #: A mission was undone.
    undone: Signal[[str]] = field(default_factory=Signal)
    #: Answered missions were remembered.
    remembered: Signal[[]] = field(default_factory=Signal)
    #: Missions of other nodes were published here, or this began to be the node that publishes.
    published: Signal[[]] = field(default_factory=Signal)
    #: An effect on the world has its yes.
    approved: Signal[[]] = field(default_factory=Signal)


@dataclass(slots=True, eq=False)
class Job:
    """Holds one kind of background work of a process. Every method but `line` is called on the event loop.

    `work` does one run; it returns the seconds after which the job runs again by itself, or None. A wake during a run
    leads to another one. A run that raises is logged and tried again later.
    """

    name: str
    work: Callable[[], Awaitable[float | None]]
    #: Test if this node may run it now; a wake that finds it may not is held until `release`.
    may_run: Callable[[], bool] = lambda: True
    #: Seconds after a wake in which others join it.
    gather: float = 0.0
    #: Seconds of one run; then it is left, and tried again like one that failed.
    budget: float = math.inf
    #: The run that a stop finds ends by itself; else it is cancelled.
    ends_itself: bool = False
    #: Runs once more when it is stopped.
    runs_last: bool = False
    retry: tuple[float, float] = RETRY
    _timer: Timer | None = None
    _handle: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None
    #: When it runs next; before its start, the seconds after that.
    _next: float = math.inf
    _last: float = math.nan
    _failures: int = 0
    _reason: str = ""
    _is_held: bool = False
    _is_stopped: bool = False
    _resting: list[asyncio.Future[None]] = field(default_factory=list)

    # -- what is said to it

    def obey(self, signals: Signals) -> None:
        """Run what was held when this node publishes."""
        signals.published.call(self.release)

    def start(self, timer: Timer | None = None) -> None:
        """Run from now on when it is woken; what was woken before runs now."""
        if self._timer is None:
            self._timer = timer or asyncio.get_running_loop()
            self._next += self._timer.time()
            self._arm()

    def wake(self, after: float | None = None) -> None:
        """Run within so many seconds; None: those in which other wakes join this one."""
        due = (self._timer.time() if self._timer else 0.0) + (self.gather if after is None else after)
        if due < self._next and not self._is_stopped:
            self._next = due
            self._arm()

    def release(self) -> None:
        """Run if a wake was held, because this node may run it by now."""
        if self._is_held:
            self.wake(0.0)

    async def finish(self) -> None:
        """Run now; return when no run is due any more, or the last one has failed."""
        self.wake(0.0)
        if self._timer is not None and not self._is_stopped:
            rest: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._resting.append(rest)
            await rest

    async def stop(self) -> None:
        """Begin no more runs, and return when none is under way; of one that is cancelled nothing is half done."""
        self._is_stopped, self._next = True, math.inf
        self._arm()
        if self._task is not None:
            if not self.ends_itself:
                self._task.cancel()
            await asyncio.wait({self._task})
        if self.runs_last:
            await self._run()
        self._rest()

    # -- running

    @property
    def is_started(self) -> bool:
        """Test if it runs when it is woken."""
        return self._timer is not None and not self._is_stopped

    @property
    def is_due(self) -> bool:
        """Test if it runs now or was woken."""
        return self._task is not None or self._next < math.inf

    def _arm(self) -> None:
        """Set the timer for the next run, unless one is under way."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._timer is not None and self._task is None and self._next < math.inf:
            self._handle = self._timer.call_at(self._next, self._begin)

    def _begin(self) -> None:
        self._handle, self._next = None, math.inf
        self._is_held = not self.may_run()
        if self._is_held:
            self._rest()
        else:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self.budget if self.budget < math.inf else None):
                again = await self.work()
            self._failures, self._reason = 0, ""
        except Exception as error:  # no reason to end the process
            again = self._fail(error)
        finally:
            self._task = None
            self._last = self._timer.time() if self._timer else math.nan
        if again is not None:
            self.wake(again)
        self._arm()
        if self._timer is None or self._next > self._timer.time():
            self._rest()

    def _fail(self, error: Exception) -> float:
        """Log why a run failed, and return the seconds before it is tried again."""
        shortest, longest = self.retry
        pause = min(shortest * 2.0 ** min(self._failures, 32), longest)
        self._failures += 1
        self._reason = message_of(error)
        _log.warning("job.failed", job=self.name, reason=self._reason, failures=self._failures, again=pause)
        return pause

    def _rest(self) -> None:
        """Let those go on who wait for the end."""
        for rest in self._resting:
            if not rest.done():
                rest.set_result(None)
        self._resting.clear()

    # -- telling

    def line(self, now: datetime) -> JobLine:
        """Describe it as of now: its state, when its last run ended, when the next one is, and why one failed."""
        started = self._timer is not None and not self._is_stopped
        state = "running" if self._task else "held" if self._is_held else "resting" if started else "stopped"
        return JobLine(
            name=self.name,
            state="failed" if self._reason and state == "resting" else state,
            last=self._moment(self._last, now),
            next=self._moment(self._next, now) if started else None,
            reason=self._reason,
        )

    def _moment(self, at: float, now: datetime) -> str | None:
        if self._timer is None or not math.isfinite(at):
            return None
        return (now + timedelta(seconds=at - self._timer.time())).isoformat(timespec="seconds")


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a task group; what its user raises is raised as it is, where the group itself would wrap it."""
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        try:
            yield group
        except BaseException as error:  # raised below
            failure = error
    if failure is not None:
        raise failure


#: Seconds after which the clock is looked at again: timers count none while a machine sleeps, and know nothing of a
#: clock that is set forward.
LOOK: Final = 60.0


class Alarms:
    """Rings once for each mission whose deadline has passed; `ring` is called on the loop, with its id."""

    def __init__(self, clock: Callable[[], datetime], ring: Callable[[str], None], look: float = LOOK) -> None:
        self._clock = clock
        self._ring = ring
        self._look = look
        self._set: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._set)

    def set(self, mission: str, deadline: str) -> None:
        """Set a mission's alarm for its deadline (ISO 8601); a passed deadline rings at once."""
        self.drop(mission)
        left = min(max(0.0, self._remaining_seconds(deadline)), self._look)
        self._set[mission] = asyncio.get_running_loop().call_later(left, self._due, mission, deadline)

    def has_passed(self, deadline: str) -> bool:
        """Test if a deadline has passed."""
        return self._remaining_seconds(deadline) <= 0

    def _remaining_seconds(self, deadline: str) -> float:
        return (datetime.fromisoformat(deadline) - self._clock()).total_seconds()

    def _due(self, mission: str, deadline: str) -> None:
        if not self.has_passed(deadline):
            # This was a look before the deadline, or the clock was set back meanwhile.
            self.set(mission, deadline)
            return
        del self._set[mission]
        self._ring(mission)

    def drop(self, mission: str) -> None:
        """Cancel a mission's alarm."""
        handle = self._set.pop(mission, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """Cancel every alarm."""
        for mission in tuple(self._set):
            self.drop(mission)


def timeout_error(mission: str, deadline: str) -> TimedOut:
    """Return the TimedOut error for a mission whose deadline passed."""
    return TimedOut(
        f"it had no answer by its deadline, {deadline}",
        field="deadline",
        remedy=f"Ask again with a later deadline; `--ancestor {mission}` pays for nothing twice.",
    )
