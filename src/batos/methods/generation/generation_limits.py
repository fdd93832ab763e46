"""Limits of generation: its quota, the log by which that is counted, and one run for all who wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from batos.inference.cost import SpendingLimits
from batos.inference.journal import Journal, Record
from batos.minds.prompt import Message
from batos.protocol.mission_documents import LearntDocument

#: A generation in lean form may make so many times as many calls, each of which costs a tenth.
MORE_CALLS: Final = 2
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """The settings `generation_calls`, `_tokens`, `_seconds`, `mission_generations`, `hour_generations`, `_again`.

    `again` is the time in seconds before a failed generation may be tried again.
    """

    calls: int = 4
    tokens: int = 24_000
    seconds: float = 600.0
    mission: int = 16
    hour: int = 60
    again: float = 3_600.0

    def limits(self, *, lean: bool, many: int = 1) -> SpendingLimits:
        """Return the spending limits of one generation's session: in lean form each of so many methods has its calls,
        in full form all are one reply.
        """
        return SpendingLimits(self.calls * (MORE_CALLS * many if lean else 1), self.tokens, self.seconds)


@dataclass(slots=True)
class GenerationQuota:
    """The number of generations begun in the last hour by this process, by its clock."""

    allowance: GenerationLimits
    clock: Callable[[], datetime]
    _begun: deque[datetime] = field(default_factory=deque)

    def refusal(self, of_mission: int) -> str:
        """Return the reason to refuse one more generation; "" if there is none.

        `of_mission` is the number of generations that the mission has begun.
        """
        now = self.clock()
        while self._begun and now - self._begun[0] >= _HOUR:
            self._begun.popleft()
        if of_mission >= self.allowance.mission:
            return f"the mission has begun {of_mission} generations, and its limit is reached (mission_generations)"
        if len(self._begun) >= self.allowance.hour:
            return f"{len(self._begun)} generations began within the hour, and the limit is reached (hour_generations)"
        return ""

    def take(self) -> None:
        """Count a generation that begins now."""
        self._begun.append(self.clock())

    def give_back(self) -> None:
        """Remove the last generation from the count, because nothing was paid for it.

        The coder, Ollama or a cell was missing.
        """
        if self._begun:
            self._begun.pop()


#: The ends of a round. A round that waits for a person's approval is not ended, and is replayed.
_ENDED: Final = frozenset({"installed", "failed"})
#: The key of a mission's note with its account of a generation.
LEARNED: Final = "learned"
#: The key of a mission's note with the log of a generation that it waits for.
AWAITED: Final = "generation"


@dataclass(frozen=True, slots=True)
class Round:
    """The current round of a log: its paid calls, and the end of the round before ({ended, at, failed?})."""

    log: str
    number: int
    paid: tuple[Record, ...]
    before: Mapping[str, Any] | None = None

    @property
    def path(self) -> str:
        """Return the path of its calls in the journal."""
        return f"generation#{self.number}"

    @property
    def first_messages(self) -> tuple[Message, ...]:
        """Return the messages of its first call; () if that was never answered."""
        first = next((each for each in self.paid if each.path == f"{self.path}/attempt0"), None)
        return () if first is None else tuple(first.request["messages"])


def current_round(journal: Journal, log: str, *, reopens: bool = False) -> Round:
    """Return the current round of a log: the first, an interrupted one, or the one after the last that ended.

    With `reopens` it is the last one that ended, if that made a method: what it paid for is served again.
    """
    ended = [note for note in journal.notes(log) if note.get("ended") in _ENDED]
    if reopens and ended and ended[-1]["ended"] == "installed":
        ended.pop()
    number = len(ended)
    done = (each for each in journal.sound([log]) if each.state == "done")
    paid = (each for each in done if each.path.startswith(f"generation#{number}/"))
    return Round(log, number, tuple(paid), ended[-1] if ended else None)


async def close_round(
    journal: Journal, round_: Round, ended: str, at: str, why: Mapping[str, object] | None = None
) -> None:
    """Record the end of a round. The record is durable when this returns."""
    entry: dict[str, Any] = {"round": round_.number, "ended": ended, "at": at}
    journal.note(round_.log, entry if why is None else {**entry, "failed": dict(why)})
    await journal.flush(round_.log)


def record_learnt(journal: Journal, mission: str, told: LearntDocument) -> None:
    """Note a mission's account of a generation, for its next attempt and for reports.

    The note is written with the mission's next call, or when the mission stops.
    """
    journal.note(mission, {LEARNED: told.copy()})


async def record_wait(journal: Journal, mission: str, log: str) -> None:
    """Note durably that a mission waits for a generation, whose calls then count as the mission's progress."""
    if log not in awaited_logs(journal.notes(mission)):
        journal.note(mission, {AWAITED: log})
        await journal.flush(mission)


def awaited_logs(notes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the logs of the generations that a mission's attempts waited for, each once."""
    return list(dict.fromkeys(note[AWAITED] for note in notes if AWAITED in note))


def read_learnt(notes: Iterable[Mapping[str, Any]]) -> list[LearntDocument]:
    """Return a mission's accounts of generations from its notes, in order."""
    return [cast("LearntDocument", dict(note[LEARNED])) for note in notes if LEARNED in note]


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
