"""A generation in the journal: one log for a wish and its coder, in rounds that end in a method or in a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from batos.inference.journal import Journal, Record
from batos.minds.prompt import Message

#: How a round ended: installed, failed, or asked (a person has not answered: the round is gone through again).
_ENDED: Final = frozenset({"installed", "failed"})
#: The note of a mission that tells of a generation.
LEARNED: Final = "learned"
#: The note of a mission that waits for a generation: its log.
AWAITED: Final = "generation"


@dataclass(frozen=True, slots=True)
class Round:
    """The round to go on with: what was paid for in it, and how the one before ended ({ended, at, failed?})."""

    log: str
    number: int
    paid: tuple[Record, ...]
    before: Mapping[str, Any] | None = None

    @property
    def path(self) -> str:
        """The place of its calls."""
        return f"generation#{self.number}"

    @property
    def begun(self) -> tuple[Message, ...]:
        """The messages of its first call, if that was answered."""
        first = next((each for each in self.paid if each.path == f"{self.path}/attempt0"), None)
        return () if first is None else tuple(first.request["messages"])


def current(journal: Journal, log: str) -> Round:
    """The round of a log that is not over: the first, one that was cut off, or the one after the last that ended."""
    ended = [note for note in journal.notes(log) if note.get("ended") in _ENDED]
    number = len(ended)
    paid = (each for each in journal.sound([log]) if each.state == "done" and each.path.startswith(_within(number)))
    return Round(log, number, tuple(paid), ended[-1] if ended else None)


async def close(journal: Journal, round_: Round, ended: str, at: str, failed: Mapping[str, Any] | None = None) -> None:
    """Write down how a round ended; durable when this returns."""
    entry: dict[str, Any] = {"round": round_.number, "ended": ended, "at": at}
    journal.note(round_.log, entry if failed is None else {**entry, "failed": dict(failed)})
    await journal.flush(round_.log)


def record(journal: Journal, mission: str, told: Mapping[str, Any]) -> None:
    """Note what a mission has to tell of a generation, so that its next attempt and whoever looks at it know it too.

    It is written with the mission's next call, or when it stops.
    """
    journal.note(mission, {LEARNED: dict(told)})


async def record_wait(journal: Journal, mission: str, log: str) -> None:
    """Note that a mission waits for a generation; durable when this returns, so that its calls count as progress."""
    if log not in awaited_logs(journal.notes(mission)):
        journal.note(mission, {AWAITED: log})
        await journal.flush(mission)


def awaited_logs(notes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the logs of the generations that a mission's attempts waited for, each once."""
    return list(dict.fromkeys(note[AWAITED] for note in notes if AWAITED in note))


def read(notes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a mission's attempts told of generations, in order; of one that is done, its provenance has the rest."""
    return [dict(note[LEARNED]) for note in notes if LEARNED in note]


def _within(number: int) -> str:
    return f"generation#{number}/"
