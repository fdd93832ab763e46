"""A limit of the readers of a database whose connections are sessions of a server: who comes last waits for a while."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from batos.protocol.errors import Busy

#: Seconds that a reader waits for another one to end.
PATIENCE: Final = 10.0
#: Seconds that closing a database waits for the threads that read it.
_CLOSING: Final = 60.0


class ReadingThreads:
    """A count of the threads that read a database, so that it is closed under none of them.

    A task that is cancelled while a thread reads for it ends at once, and the thread later.
    """

    def __init__(self) -> None:
        self._count, self._ended = 0, threading.Condition()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count this thread meanwhile, unless it is that of the event loop, which closes nothing under itself."""
        if _is_loop():
            yield
            return
        with self._ended:
            self._count += 1
        try:
            yield
        finally:
            with self._ended:
                self._count -= 1
                self._ended.notify_all()

    def wait(self, patience: float = _CLOSING) -> None:
        """Wait until no thread reads any more, for so many seconds at most."""
        with self._ended:
            self._ended.wait_for(lambda: not self._count, patience)


class ReaderLimit:
    """A limit of the threads that read at once. A thread that reads already begins further reads without waiting.

    The thread of the event loop never waits: what it reads is short, and all else would wait with it. The sessions that
    it needs are counted beside these.
    """

    def __init__(self, most: int, patience: float = PATIENCE) -> None:
        self._most, self._patience = most, patience
        self._free = threading.BoundedSemaphore(most)
        self._of_thread = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wait until this thread may read. Raises: Busy: too many others read all the time."""
        depth = getattr(self._of_thread, "depth", 0)
        if _is_loop():
            yield
            return
        if not depth and not self._free.acquire(timeout=self._patience):
            raise Busy(
                f"{self._most} others have read the image at this node for {self._patience:g} s, as many as may",
                field="image",
                remedy="Try again. Each reader holds a session of the server: start another node for more at once.",
            )
        self._of_thread.depth = depth + 1
        try:
            yield
        finally:
            self._of_thread.depth -= 1
            if not depth:
                self._free.release()


def _is_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
