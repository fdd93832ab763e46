"""Doors for a verb that reads what a person types in the main thread: their event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from batos import loopwatch
from batos.cli.doors.door import Door, Opened
from batos.protocol.errors import BatosError

T = TypeVar("T")


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Ctrl-C ended what was under way; the door is still open."""


@dataclass(slots=True)
class _DoorTask:
    """A door that is being opened, is open, or is being closed, by a task of its own."""

    opened: Opened
    door: asyncio.Future[Door]
    leave: asyncio.Event
    task: asyncio.Task[None] | None = None

    async def hold(self) -> None:
        """Open it, and close it when it is to be left; what keeps it from opening is raised by `door`."""
        try:
            async with self.opened as door:
                self.door.set_result(door)
                await self.leave.wait()
        except BaseException as error:  # whoever waits for the door is to get it, and no one else
            if self.door.done():
                raise
            self.door.set_exception(error)
            self.door.exception()  # who waited for it may have been stopped

    async def close(self) -> None:
        """Close it, and raise what came of that; who is stopped meanwhile stops nothing."""
        self.leave.set()
        if self.task is not None:
            await asyncio.shield(self.task)

    @property
    def gone(self) -> bool:
        """Say whether it is not open any more, or never was."""
        return self.task is not None and self.task.done()


class BackgroundDoor:
    """Opens a door in a thread of its own, and keeps it open while something is done.

    A door that is lent gives an image without a server back as soon as nothing goes on behind the door, or another
    process wants it, so that the image is free while a person thinks; the next work opens it again. Ctrl-C and SIGTERM
    come to the main thread alone, which may stand in a read that no event loop could leave.
    """

    def __init__(
        self, opens: Callable[[], Opened], lends: Callable[[], Coroutine[Any, Any, object]] | None = None
    ) -> None:
        """Call `opens` in the main thread; `lends` returns when another process wants the image."""
        self._opens = opens
        self._lends = lends
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._leave = asyncio.Event()
        self._failure: BaseException | None = None
        #: Set as the door is entered: the first opening, and the loop of the thread.
        self._first: Opened
        self._loop: asyncio.AbstractEventLoop
        self._held: _DoorTask | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._giving: set[asyncio.Task[None]] = set()
        #: Held while a door is opened or closed.
        self._turn = asyncio.Lock()
        self._thread = threading.Thread(target=self._run, name="batos-door")

    def __enter__(self) -> Self:
        self._first = self._opens()
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
        await self._open(self._first)
        self._ready.set_result(asyncio.get_running_loop())
        await self._leave.wait()
        # Whoever was told to end did not wait for it; the door may only close behind it.
        for task in (*self._tasks, *self._giving):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._giving, return_exceptions=True)
        async with self._turn:
            if self._held is not None:
                await self._held.close()

    # -- the door

    async def _open(self, opened: Opened) -> Door:
        """Open the door, if it is not open yet, and return it; otherwise return this one."""
        async with self._turn:
            held = self._held
            if held is not None and held.leave.is_set():
                await held.close()
            if held is None or held.gone:
                held = self._held = _DoorTask(opened, asyncio.get_running_loop().create_future(), asyncio.Event())
                held.task = asyncio.create_task(held.hold())
        # Shielded: a question that is given up is not the end of the door.
        return await asyncio.shield(held.door)

    async def _give_back(self) -> None:
        """Close the door when nothing is under way behind it; a work that comes meanwhile keeps it open."""
        held = self._held
        if held is None:
            return
        with suppress(BatosError):  # it was told to who asked for it
            door = await asyncio.shield(held.door)
            if door.served or self._lends is None:
                return
            await _either(door.rest(), self._lends())
        async with self._turn:
            if self._tasks or self._held is not held:
                return
            try:
                await held.close()
            finally:
                if held.gone:
                    self._held = None

    # -- work

    def do(self, work: Callable[[Door], Coroutine[Any, Any, T]]) -> T:
        """Do work at the door and return its result, or raise its error; the main thread waits for it.

        Ctrl-C cancels the work and waits for its end. Raises: Interrupted: it was cancelled so. KeyboardInterrupt: a
        second Ctrl-C came, which waits for nothing.
        """
        done: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []
        opened = self._opens()
        try:
            self._loop.call_soon_threadsafe(lambda: tasks.append(self._begin(opened, work, done)))
            return done.result()
        except KeyboardInterrupt:
            # There, not here: the task may not have begun.
            self._loop.call_soon_threadsafe(lambda: _give_up(tasks, done))
        with suppress(CancelledError):
            done.result()
        raise Interrupted

    @property
    def open(self) -> bool:
        """Say whether the door is open; one that was lent is closed when nothing goes on behind it."""
        return self._held is not None

    @property
    def under_way(self) -> bool:
        """Say if work is under way."""
        return bool(self._tasks)

    def _begin(
        self, opened: Opened, work: Callable[[Door], Coroutine[Any, Any, T]], done: Future[T]
    ) -> asyncio.Task[T]:
        async def run_work() -> T:
            return await work(await self._open(opened))

        for giving in self._giving:
            giving.cancel()
        task = self._loop.create_task(run_work())
        self._tasks.add(task)

        def settle(ended: asyncio.Task[T]) -> None:
            self._tasks.discard(ended)
            if self._lends is not None and not self._tasks and not self._leave.is_set():
                giving = self._loop.create_task(self._give_back())
                self._giving.add(giving)
                giving.add_done_callback(self._on_given_back)
            error = CancelledError() if ended.cancelled() else ended.exception()
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(ended.result())

        task.add_done_callback(settle)
        return task

    def _on_given_back(self, giving: asyncio.Task[None]) -> None:
        self._giving.discard(giving)
        if not giving.cancelled() and (error := giving.exception()) is not None:
            self._failure = error


async def _either(*works: Coroutine[Any, Any, object]) -> None:
    """Return when one of them has returned, or raise what it raised; the others are ended first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


def _give_up(tasks: Sequence[asyncio.Task[T]], done: Future[T]) -> None:
    """Cancel the work; where Ctrl-C came before it was handed over there is none, and nothing is waited for."""
    for task in tasks:
        task.cancel()
    if not tasks:
        done.set_exception(CancelledError())
