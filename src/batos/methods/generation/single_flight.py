"""Single flight: who needs what is being made just now waits for it, and it goes on while anyone does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Abandoned(Exception):
    """Nobody waits for it any more. No error: what is paid for stays in the journal, and who comes goes on from there.

    Never seen by who waits.
    """


@dataclass(slots=True, eq=False)
class Flight(Generic[T]):
    """One piece of work, and how many wait for it."""

    waiting: int = 0
    #: Said by who waits: an install that one of them may have is wanted, whoever began it.
    wishes: set[str] = field(default_factory=set)
    task: asyncio.Task[T] | None = None

    def hold(self) -> None:
        """Asked before each call is paid: raises Left when nobody waits."""
        if not self.waiting:
            raise Abandoned


class SingleFlight(Generic[T]):
    """The work under way, by key; its tasks are its own, so that none dies with the mission that began it."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, Flight[T]] = {}
        #: Work that is being ended, by key: who comes waits for its end, and begins it anew.
        self._leaving: dict[Hashable, asyncio.Task[T]] = {}

    def flying(self, key: Hashable) -> bool:
        """Whether it is under way, so that who joins begins nothing."""
        return key in self._flying

    async def run_once(self, key: Hashable, begin: Callable[[Flight[T]], Coroutine[Any, Any, T]], wish: str = "") -> T:
        """What the work comes to, begun now if nobody did. A cancellation leaves the others waiting.

        `wish` is added to the flight's. Raises what the work raises, to each who waits.
        """
        while True:
            while key in self._leaving:
                await asyncio.wait({self._leaving[key]})
            flight = self._flying.get(key) or self._begun(key, begin)
            flight.waiting += 1
            flight.wishes.add(wish)
            try:
                assert flight.task is not None
                return await asyncio.shield(flight.task)
            except Abandoned:
                # It stopped just before this came: begin again, from what is paid for.
                continue
            finally:
                flight.waiting -= 1

    async def leave(self, key: Hashable) -> None:
        """End the work at once, unless somebody waits for it; returns when it has ended."""
        flight = self._flying.get(key)
        if flight is None or flight.waiting or flight.task is None:
            return
        self._leaving[key] = flight.task
        flight.task.cancel()
        await asyncio.wait({flight.task})

    def _begun(self, key: Hashable, begin: Callable[[Flight[T]], Coroutine[Any, Any, T]]) -> Flight[T]:
        flight: Flight[T] = Flight()
        flight.task = asyncio.ensure_future(begin(flight))
        self._flying[key] = flight
        flight.task.add_done_callback(lambda task: self._landed(key, flight, task))
        return flight

    def _landed(self, key: Hashable, flight: Flight[T], task: asyncio.Task[T]) -> None:
        if self._flying.get(key) is flight:
            del self._flying[key]
        self._leaving.pop(key, None)
        if not task.cancelled():
            task.exception()  # told to who waits; where nobody does, it is nobody's

    async def aclose(self) -> None:
        """End what is under way; returns when all of it has."""
        tasks = [flight.task for flight in self._flying.values() if flight.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
