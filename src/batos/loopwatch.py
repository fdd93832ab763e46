"""The loop watch: an event loop that times every callback by the CPU it used and remembers those that blocked it.

The CPU of the loop's own thread is counted, not wall time, so that a sleeping callback or another thread's work never
counts against a callback. A yardstick that is measured at the same moment gives the limit, so that a slow or busy
machine counts against none either. Only garbage collection is subtracted, because a collection may fall into any
callback. An import counts: import everything needed before the loop starts.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: The CPU seconds from which a callback is noted as slow, as in asyncio's own debug mode (`slow_callback_duration`).
SLOW = 0.1
#: The turns of an empty loop that use as much CPU as one callback may: 0.3 to 0.4 s on a machine of 2026.
MOST_TURNS = 30_000_000
#: The turns that are measured, and how often; the slowest measurement counts.
_TURNS, _MEASUREMENTS = 100_000, 5

_ASYNCIO = str(Path(asyncio.__file__).parent)

#: EX_SOFTWARE: what a watched process answers when it blocked its loop.
EXIT_BLOCKED = 70


@dataclass(frozen=True, slots=True)
class BlockingCallback:
    """A callback that used much: its name and places, its CPU seconds, and how many turns of an empty loop use that."""

    what: str
    seconds: float
    turns: float

    def __str__(self) -> str:
        return f"{self.seconds * 1000:.0f} ms of CPU ({self.turns / 1e6:.0f} million empty turns) in {self.what}"


def turn_seconds() -> float:
    """Return the CPU seconds that one turn of an empty loop takes in this thread, here and now."""
    return max(_time_turns(_TURNS) for _ in range(_MEASUREMENTS)) / _TURNS


def _time_turns(turns: int) -> float:
    began = time.thread_time()
    for _ in range(turns):
        pass
    return time.thread_time() - began


class WatchedLoop(asyncio.SelectorEventLoop):
    """A selector loop that lists the callbacks that used more than `SLOW` of its thread's CPU.

    In `blocked` are those that used more than `most_turns`, which is a fault at any pace; in `slow` are the others.
    """

    def __init__(self, slow: float = SLOW, most_turns: int = MOST_TURNS) -> None:
        self.noted_from, self.most_turns = slow, most_turns
        self.blocked: list[BlockingCallback] = []
        self.slow: list[BlockingCallback] = []
        self.collecting = 0.0  # CPU seconds that the collector has used in this loop's thread
        self._collection_began = 0.0
        self._looked, self._used = 0.0, 0.0
        super().__init__()
        gc.callbacks.append(self._note_collection)

    def close(self) -> None:
        """Close the loop; what it remembered stays."""
        if self._note_collection in gc.callbacks:
            gc.callbacks.remove(self._note_collection)
        super().close()

    # Every way into the loop: asyncio calls exactly these (_add_reader and _add_writer for its own transports).

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call asyncio's method with the callback timed."""
        return super().call_soon(_TimedCallback(self, callback), *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call asyncio's method with the callback timed."""
        return super().call_soon_threadsafe(_TimedCallback(self, callback), *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call asyncio's method with the callback timed; `call_later` comes here too."""
        return super().call_at(when, _TimedCallback(self, callback), *args, context=context)

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call asyncio's method with the callback timed."""
        super().add_signal_handler(sig, _TimedCallback(self, callback), *args)

    def _add_reader(self, fd: int, callback: Callable[[*Ts], object], *args: *Ts) -> asyncio.Handle:
        added: asyncio.Handle = super()._add_reader(fd, _TimedCallback(self, callback), *args)  # type: ignore[misc]  # private
        return added

    def _add_writer(self, fd: int, callback: Callable[[*Ts], object], *args: *Ts) -> asyncio.Handle:
        added: asyncio.Handle = super()._add_writer(fd, _TimedCallback(self, callback), *args)  # type: ignore[misc]  # private
        return added

    def read_cpu(self, now: float) -> float:
        """Return the CPU seconds of this thread without the collector's, read now or a hundredth of `SLOW` ago."""
        if now - self._looked > self.noted_from / 100:
            self._looked, self._used = now, time.thread_time() - self.collecting
        return self._used

    def note(self, found: BlockingCallback) -> None:
        """List a callback as blocking or as slow."""
        (self.blocked if found.turns > self.most_turns else self.slow).append(found)

    def _note_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != getattr(self, "_thread_id", None):
            return  # another thread pays for it
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            self.collecting += time.thread_time() - self._collection_began


class _TimedCallback(Generic[*Ts]):
    """A callback with its stopwatch; asyncio's debug output sees through it by `__wrapped__`."""

    __slots__ = ("__wrapped__", "_loop")

    def __init__(self, loop: WatchedLoop, callback: Callable[[*Ts], object]) -> None:
        self._loop = loop
        self.__wrapped__ = callback

    def __call__(self, *args: *Ts) -> object:
        callback, loop = self.__wrapped__, self._loop
        task = getattr(callback, "__self__", None)
        resumed = _position(task) if isinstance(task, asyncio.Task) else None
        began = time.perf_counter()
        used = loop.read_cpu(began)
        try:
            return callback(*args)
        finally:
            if time.perf_counter() - began > loop.noted_from:  # no thread uses more CPU than time goes by
                seconds = time.thread_time() - loop.collecting - used
                if seconds > loop.noted_from:
                    loop.note(BlockingCallback(_name(callback, task, resumed), seconds, seconds / turn_seconds()))


def _name(callback: Callable[..., object], task: object, resumed: tuple[str, int] | None) -> str:
    if isinstance(task, asyncio.Task):
        what = getattr(task.get_coro(), "__qualname__", repr(task.get_coro()))
        places = ("its end" if each is None else f"{each[0]}:{each[1]}" for each in (resumed, _position(task)))
        return f"task {task.get_name()} ({what}), from {' to '.join(places)}"
    module = getattr(callback, "__module__", None)
    return f"{module}.{getattr(callback, '__qualname__', repr(callback))}"


def _position(task: asyncio.Task[Any]) -> tuple[str, int] | None:
    """Return the file and the line of the innermost coroutine outside asyncio; None if the task has finished."""
    steps: list[Any] = []
    step: Any = task.get_coro()
    while step is not None:
        steps.append(step)
        step = getattr(step, "cr_await", None) or getattr(step, "gi_yieldfrom", None) or getattr(step, "ag_await", None)
    for step in reversed(steps):
        inner = getattr(step, "cr_frame", None) or getattr(step, "gi_frame", None) or getattr(step, "ag_frame", None)
        if inner is not None and not inner.f_code.co_filename.startswith(_ASYNCIO):
            return inner.f_code.co_filename, inner.f_lineno
    return None


def run(main: Coroutine[Any, Any, T], *, debug: bool) -> T:
    """Run a coroutine as `asyncio.run` does; with `debug`, exit with 70 and a report on stderr if one blocked."""
    if not debug:
        return asyncio.run(main)
    loop = WatchedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            return runner.run(main)
        finally:
            for one in loop.blocked:
                print(f"the event loop was blocked: {one}", file=sys.stderr)  # noqa: T201 (a watched process says it)
            if loop.blocked:
                raise SystemExit(EXIT_BLOCKED)
