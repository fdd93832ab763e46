"""A door for a verb that reads what a person types in the main thread: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final, Self, TypeVar

from batos import loopwatch
from batos.cli.doors.door import Door, Opened
from batos.client.portal import Portal, in_a_task

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Ctrl-C ended what was under way; the door is still open."""


class BackgroundDoor:
    """Holds a door open in a thread of its own until the end of the block.

    Ctrl-C and SIGTERM come to the main thread alone, which may stand in a read that no event loop could leave.
    """

    def __init__(self, opened: Opened) -> None:
        self._held = in_a_task(opened)
        self._portal = Portal(partial(loopwatch.run, debug=os.environ.get("BATOS_DEBUG_LOOP") == "1"))
        #: Set as the door is entered.
        self._door: Door
        self._tasks: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> Self:
        # Threads inherit what is blocked: a signal that came to another one would not wake the main one from a read.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._portal.running()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            self._door = self._portal.run(self._held.__aenter__)
        except BaseException:
            self._portal.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._portal.close(self._end)
        except (Exception, SystemExit):
            if raised is None:
                raise

    async def _end(self) -> None:
        # Whoever was told to end did not wait for it; the door may only close behind it.
        self._cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._held.__aexit__(None, None, None)

    def do(self, work: Callable[[Door], Coroutine[Any, Any, T]]) -> T:
        """Do work at the door and return its result, or raise its error; the main thread waits for it.

        Ctrl-C cancels the work and waits for its end. Raises: Interrupted: it was cancelled so. KeyboardInterrupt: a
        second Ctrl-C came, which waits for nothing.
        """
        heard: list[int] = []

        def on_interrupt(number: int, frame: FrameType | None) -> None:
            heard.append(number)
            if len(heard) > 1:
                raise KeyboardInterrupt
            self._portal.running().call_soon_threadsafe(self._cancel)

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            result = self._portal.run(self._work, work, heard)
        except CancelledError:
            raise Interrupted from None
        finally:
            signal.signal(signal.SIGINT, before)
        if heard:
            raise Interrupted
        return result

    @property
    def under_way(self) -> bool:
        """Test if work is under way."""
        return bool(self._tasks)

    async def _work(self, work: Callable[[Door], Coroutine[Any, Any, T]], heard: Sequence[int]) -> T:
        """Do work, unless it was `heard` before it began that it is to stop."""
        if heard:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(work(self._door))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await task

    def _cancel(self) -> None:
        """Cancel what is under way; what was told to end already goes on with its end."""
        for task in self._tasks:
            if not task.cancelling():
                task.cancel()
