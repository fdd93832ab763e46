"""A door for a verb that reads what a person types in the main thread: its event loop runs in a thread of its own."""

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
from batos.cli.doors.door import Door, Opened

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Ctrl-C ended what was under way; the door is still open."""


class BackgroundDoor:
    """Holds a door open in a thread of its own until the end of the block.

    Ctrl-C and SIGTERM come to the main thread alone, which may stand in a read that no event loop could leave.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._leave = asyncio.Event()
        self._failure: BaseException | None = None
        #: Set as the door is entered: the door, and the loop of the thread.
        self._door: Door
        self._loop: asyncio.AbstractEventLoop
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
            self._loop = self._ready.result()
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
        async with self._opened as self._door:
            self._ready.set_result(asyncio.get_running_loop())
            await self._leave.wait()
            # Whoever was told to end did not wait for it; the door may only close behind it.
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def do(self, work: Callable[[Door], Coroutine[Any, Any, T]]) -> T:
        """Do work at the door and return its result, or raise its error; the main thread waits for it.

        Ctrl-C cancels the work and waits for its end. Raises: Interrupted: it was cancelled so. KeyboardInterrupt: a
        second Ctrl-C came, which waits for nothing.
        """
        done: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []
        try:
            self._loop.call_soon_threadsafe(lambda: tasks.append(self._begin(work, done)))
            return done.result()
        except KeyboardInterrupt:
            # There, not here: the task may not have begun.
            self._loop.call_soon_threadsafe(lambda: _give_up(tasks, done))
        with suppress(CancelledError):
            done.result()
        raise Interrupted

    @property
    def under_way(self) -> bool:
        """Test if work is under way."""
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


def _give_up(tasks: Sequence[asyncio.Task[T]], done: Future[T]) -> None:
    """Cancel the work; where Ctrl-C came before it was handed over there is none, and nothing is waited for."""
    for task in tasks:
        task.cancel()
    if not tasks:
        done.set_exception(CancelledError())
