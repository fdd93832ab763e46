"""An open door whose event loop runs in a thread, for a verb that reads what a person types in the main one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from batos import loopwatch
from batos.front.doors.door import Door, Opened

T = TypeVar("T")


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """Ctrl-C ended what was under way; the door is still open."""


class Alongside:
    """Opens a door in a thread of its own and keeps it open, also while nobody waits for anything.

    Ctrl-C and SIGTERM come to the main thread alone, which may stand in a read that no event loop could leave.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._ready: Future[tuple[asyncio.AbstractEventLoop, Door]] = Future()
        self._leave = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="batos-door")

    def __enter__(self) -> Self:
        # Threads inherit what is blocked: a signal that came to another one would not wake the main one from a read.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            self._loop, self._door = self._ready.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join()
        if self._failure is not None and raised is None:
            raise self._failure

    def _run(self) -> None:
        try:
            loopwatch.run(self._keep(), debug=os.environ.get("BATOS_DEBUG_LOOP") == "1")
        except BaseException as error:  # raised in the main thread: nobody waits for this one
            self._failure = error
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _keep(self) -> None:
        async with self._opened as door:
            self._ready.set_result((asyncio.get_running_loop(), door))
            await self._leave.wait()
            # Whoever was told to end did not wait for it; the door may only close behind it.
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def do(self, work: Callable[[Door], Coroutine[Any, Any, T]]) -> T:
        """What the work gives, or the error that it raises. The main thread waits for it.

        Ctrl-C cancels it and waits for its end: Interrupted. A second one does not wait: KeyboardInterrupt.
        """
        done: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []
        try:
            self._loop.call_soon_threadsafe(lambda: tasks.append(self._begin(work, done)))
            return done.result()
        except KeyboardInterrupt:
            # There, not here: the task may not have begun.
            self._loop.call_soon_threadsafe(lambda: _given_up(tasks, done))
        with suppress(CancelledError):
            done.result()
        raise Interrupted

    @property
    def under_way(self) -> bool:
        """Whether something is being done."""
        return bool(self._tasks)

    def _begin(self, work: Callable[[Door], Coroutine[Any, Any, T]], done: Future[T]) -> asyncio.Task[T]:
        task = self._loop.create_task(work(self._door))

        self._tasks.add(task)

        def settle(ended: asyncio.Task[T]) -> None:
            self._tasks.discard(ended)
            error = CancelledError() if ended.cancelled() else ended.exception()
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(ended.result())

        task.add_done_callback(settle)
        return task


def _given_up(tasks: Sequence[asyncio.Task[T]], done: Future[T]) -> None:
    """Cancel the work; where Ctrl-C came before it was handed over there is none, and nothing is waited for."""
    for task in tasks:
        task.cancel()
    if not tasks:
        done.set_exception(CancelledError())
