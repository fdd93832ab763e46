"""The log of a generation in the journal: rounds for one intent and coder, each ended by a method or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from batos.inference.journal import Journal, Record
from batos.minds.prompt import Message
from batos.protocol.mission_documents import LearntDocument

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


def current(journal: Journal, log: str, *, reopens: bool = False) -> Round:
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


async def close(journal: Journal, round_: Round, ended: str, at: str, why: Mapping[str, object] | None = None) -> None:
    """Record the end of a round. The record is durable when this returns."""
    entry: dict[str, Any] = {"round": round_.number, "ended": ended, "at": at}
    journal.note(round_.log, entry if why is None else {**entry, "failed": dict(why)})
    await journal.flush(round_.log)


def record(journal: Journal, mission: str, told: LearntDocument) -> None:
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


def read(notes: Iterable[Mapping[str, Any]]) -> list[LearntDocument]:
    """Return a mission's accounts of generations from its notes, in order."""
    return [cast("LearntDocument", dict(note[LEARNED])) for note in notes if LEARNED in note]
