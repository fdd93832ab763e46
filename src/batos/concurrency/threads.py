"""Threads beside the loop: the one for every commit, those for heavy work, and long work that can be ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Thread, get_ident
from typing import Any, Final, TypeAlias, TypeVar

from batos.protocol.errors import NoServer

T = TypeVar("T")


class CommitThread:
    """Runs work one piece after another off the loop: commits serialise on one lock anyway, so one thread is best."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="batos-commit")

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue work; it runs even if nobody waits for it."""
        return self._executor.submit(work)

    async def run(self, work: Callable[[], T]) -> T:
        """Queue work and wait for its end, whatever happens to the task that waits."""
        return await finish_despite_cancel(asyncio.wrap_future(self.submit(work)))

    def close(self) -> None:
        """Finish what is queued, then end the thread."""
        self._executor.shutdown(wait=True)


async def finish_despite_cancel(future: asyncio.Future[T], on_cancel: Callable[[], object] = lambda: None) -> T:
    """Wait until `future` is done, also while being cancelled; a cancellation is told at once and raised afterwards.

    A commit that runs in a thread cannot be stopped. Leaving before its end would give its connection away while
    the thread still uses it. After CancelledError the work may nevertheless have been done.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await _wait(future)
        except asyncio.CancelledError as error:
            cancelled = error
            on_cancel()
    failure = future.exception()
    if cancelled is not None:
        raise cancelled from failure
    return future.result()


def count_cancellations() -> int:
    """Return how often the running task was cancelled: more than before, where an await kept a cancellation back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _wait(future: asyncio.Future[T]) -> None:
    """Wait for a future's end, whatever that is; to be cancelled leaves the future as it is.

    `asyncio.wait` does the same for a set of futures, for three times the work.
    """
    waiter = asyncio.get_running_loop().create_future()

    def wake(_: asyncio.Future[T]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(wake)
    try:
        await waiter
    finally:
        future.remove_done_callback(wake)


#: Characters (or bytes) of text up to which work on them is light: a few milliseconds.
LIGHT = 48 * 1024


async def offload(size: int, work: Callable[[], T]) -> T:
    """Return `work()`, run in a thread if `size` is more than LIGHT.

    Waits for the thread even when cancelled, because the caller then closes the connection that the work reads.
    """
    if size <= LIGHT:
        return work()
    return await finish_despite_cancel(asyncio.ensure_future(asyncio.to_thread(work)))


#: Hears the name of a phase, the bytes that are done, and all that are to be done.
OnPhase: TypeAlias = Callable[[str, int, int], object]

#: The least bytes of work that anybody is told of: less is over before it is read.
LEAST: Final = 64 * 2**20
#: The parts of the whole after each of which progress is told.
_PARTS: Final = 100


class LongWork:
    """Holds how far some work is, by phases, and whether it is to stop.

    Any thread that does a part of it calls `begin` and `step`; all else is called on the event loop.
    """

    def __init__(self, tell: OnPhase | None = None, least: int = LEAST) -> None:
        self._tell, self._least = tell, least
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._phases: Mapping[str, int] = {}
        self._phase, self._is_owed = "", False
        self._before = self._done = self._told = self._whole = 0

    def expect(self, phases: Mapping[str, int]) -> None:
        """Take the phases in their order, each with its bytes."""
        self._phases, self._whole = phases, sum(phases.values())

    def begin(self, phase: str) -> None:
        """Begin a phase; those before it are done. Raises: NoServer: the work was told to stop."""
        self._before = self._done = sum(list(self._phases.values())[: list(self._phases).index(phase)])
        self._phase = phase
        self._say()
        self.step(0)

    def step(self, size: int) -> None:
        """Count bytes that are done. Raises: NoServer: the work was told to stop."""
        if self._stopped.is_set():
            raise NoServer("the process stops in the midst of this", remedy="The next one goes on with it.")
        self._done = min(self._done + size, self._before + self._phases.get(self._phase, 0))
        if (self._done - self._told) * _PARTS > self._whole:
            self._say()

    def _say(self) -> None:
        self._told = self._done
        if self._tell is not None and self._whole >= self._least:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._tell, self._phase, self._done, self._whole)

    def owe(self) -> None:
        """Note that what was begun has to come to its end, also where nobody waits for it any more."""
        self._is_owed = True

    def leave(self) -> None:
        """Stop, unless it has to come to its end: whoever asked for it has left."""
        if not self._is_owed:
            self.stop()

    def stop(self) -> None:
        """Let the work end at its next step."""
        self._stopped.set()

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work to its end. A cancellation tells it to stop, and is raised when it has ended."""
        return await finish_despite_cancel(asyncio.ensure_future(work), self.stop)

    async def ask_server(self, work: Callable[[], T]) -> T:
        """Return what a server does for this, asked in a thread of its own. That one is left when this is to stop.

        Raises: NoServer: the work was told to stop.
        """
        done: asyncio.Future[T] = self._loop.create_future()

        def give(result: T | None, error: BaseException | None) -> None:
            if error is not None and not done.done():
                done.set_exception(error)
            elif not done.done():
                done.set_result(result)  # type: ignore[arg-type]

        def ask() -> None:
            result, failure = None, None
            try:
                result = work()
            except BaseException as error:  # told to who waits
                failure = error
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(give, result, failure)

        Thread(target=ask, name="batos-asking", daemon=True).start()
        stopped = asyncio.ensure_future(self._stopped.wait())
        either: set[asyncio.Future[Any]] = {done, stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not done.done():
            done.cancel()
            self.step(0)
        return done.result()


def on_this_loop(told: Callable[..., None]) -> Callable[..., None]:
    """Return a callback that any thread may call, for one whose work is the running loop's alone."""
    loop, own = asyncio.get_running_loop(), get_ident()

    def tell(*args: object) -> None:
        if get_ident() == own:
            told(*args)
        else:
            loop.call_soon_threadsafe(told, *args)

    return tell
