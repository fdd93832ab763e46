"""Single flight: work is run once for all who wait for the same key, and goes on while anyone waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Abandoned(Exception):
    """Raised in the work once nobody waits for it. Not an error: paid answers stay in the journal for the next caller.

    No waiting caller ever gets it.
    """


@dataclass(slots=True, eq=False)
class Flight(Generic[T]):
    """A piece of work, with the number of callers that wait for it."""

    waiting: int = 0
    #: The wishes of all who wait, and of those who left.
    wishes: set[Hashable] = field(default_factory=set)

    def raise_if_abandoned(self) -> None:
        """Raise Abandoned if nobody waits any more. The session calls this before each paid call."""
        if not self.waiting:
            raise Abandoned


class _Flying(NamedTuple, Generic[T]):
    """A flight with the task that does its work."""

    flight: Flight[T]
    task: asyncio.Task[T]


class SingleFlight(Generic[T]):
    """The running work by key, in tasks of its own, so that no work dies with the mission that started it."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, _Flying[T]] = {}
        #: Work that is being cancelled, by key: a new caller waits for its end and starts it anew.
        self._leaving: dict[Hashable, asyncio.Task[T]] = {}

    def flying(self, key: Hashable) -> bool:
        """Test if work for the key is running, so that a caller would start nothing."""
        return key in self._flying

    async def run_once(
        self, key: Hashable, begin: Callable[[Flight[T]], Coroutine[Any, Any, T]], wish: Hashable = None
    ) -> T:
        """Return the result of the running work for `key`, starting it if needed.

        An error of the work is raised to each waiter. Cancelling one waiter does not cancel the work for the others.
        The flight keeps the `wish` of each.
        """
        while True:
            while key in self._leaving:
                await asyncio.wait({self._leaving[key]})
            flight, task = self._flying.get(key) or self._start(key, begin)
            flight.waiting += 1
            flight.wishes.add(wish)
            try:
                return await asyncio.shield(task)
            except Abandoned:
                # The work stopped just before this call: start again, from the paid answers.
                continue
            finally:
                flight.waiting -= 1

    async def leave(self, key: Hashable) -> None:
        """Cancel the work at once unless a caller waits for it, and wait until it has ended."""
        flying = self._flying.get(key)
        if flying is None or flying.flight.waiting:
            return
        self._leaving[key] = flying.task
        flying.task.cancel()
        await asyncio.wait({flying.task})

    def _start(self, key: Hashable, begin: Callable[[Flight[T]], Coroutine[Any, Any, T]]) -> _Flying[T]:
        """Start the work in a task of its own."""
        flight: Flight[T] = Flight()
        flying = self._flying[key] = _Flying(flight, asyncio.ensure_future(begin(flight)))
        flying.task.add_done_callback(lambda task: self._forget(key, task))
        return flying

    def _forget(self, key: Hashable, task: asyncio.Task[T]) -> None:
        """Forget work that has ended."""
        flying = self._flying.get(key)
        if flying is not None and flying.task is task:
            del self._flying[key]
        self._leaving.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieve the error, which each waiter got already

    async def aclose(self) -> None:
        """Cancel all running work, and wait until it has ended."""
        tasks = [flying.task for flying in self._flying.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
