"""The one thread in which every commit of a database happens, and the wait that a cancellation cannot break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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
