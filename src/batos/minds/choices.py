"""Keeps what a mission decided without being asked: noted in the journal at once, read by each later attempt.

A note is written with the mission's next call, at the latest: what was paid for is never there without the choices that
led to it. docs/running.md lists what is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from batos.inference.journal import Journal

Note: TypeAlias = Mapping[str, Any]
How: TypeAlias = Literal["method", "control", "interpreted"]

#: The fields of a note about a slot: which one, what answers it, and of which revision.
_SLOT: Final = "slot"
_HOW: Final = "answered_by"
_REVISION: Final = "revision"


class Choice(NamedTuple):
    """Says what answers messages to a slot in this mission; `revision` is 0 where no method was there."""

    how: How
    revision: int = 0


class MissionChoices:
    """Keeps a mission's choices: of its earlier attempts, of the missions that it retries, and those made now."""

    def __init__(self, journal: Journal, mission: str, retried: Sequence[str] = ()) -> None:
        """Read the notes of the mission and of `retried`, the missions that asked the same question, nearest first."""
        self._journal = journal
        self._mission = mission
        self._own: list[Note] = list(journal.notes(mission))
        others = [journal.notes(each) for each in retried]
        self._others: list[Note] = [note for notes in others for note in notes]
        self._choices = choices_in(self._own)
        self._retried: dict[str, Choice] = {}
        for notes in reversed(others):
            self._retried |= choices_in(notes)

    def notes(self) -> Iterator[Note]:
        """Yield every note, the mission's own before those of the ones that it retries; of each the oldest first."""
        yield from self._own
        yield from self._others

    def mine(self) -> tuple[Note, ...]:
        """Return the mission's own notes, oldest first."""
        return tuple(self._own)

    def own(self, name: str) -> Any:
        """Return what this mission's first note of that name says; None: it has none."""
        return next((note[name] for note in self._own if name in note), None)

    def note(self, **decided: object) -> None:
        """Note what was decided, each by its name; durable with the next call."""
        self._own.append(decided)
        self._journal.note(self._mission, decided)

    def choice(self, slot: str) -> Choice | None:
        """Return what this mission has chosen to answer a slot with; None: nothing yet."""
        return self._choices.get(slot)

    def earlier_choice(self, slot: str) -> Choice | None:
        """Return what the nearest of those chose that it retries."""
        return self._retried.get(slot)

    def choose(self, slot: str, choice: Choice) -> None:
        """Note what answers a slot from now on, unless it is what did before."""
        if self._choices.get(slot) != choice:
            self._choices[slot] = choice
            self.note(**{_SLOT: slot, _HOW: choice.how, _REVISION: choice.revision})


def choices_in(notes: Sequence[Note]) -> dict[str, Choice]:
    """Return the choices that one mission's notes tell of, by slot; the last of each stands."""
    found: dict[str, Choice] = {}
    for note in notes:
        if _SLOT in note:
            found[note[_SLOT]] = Choice(cast("How", note[_HOW]), int(note[_REVISION]))
    return found
