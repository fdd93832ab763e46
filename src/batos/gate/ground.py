"""The ground of an answer: everything it may rest on, and the draft, as the gate's checks receive them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from batos.gate import dates, figures, languages
from batos.gate.evidence_index import EvidenceIndex, index_of
from batos.memory.evidence import Evidence, Passage
from batos.memory.terms import words

#: Names that an answer may use although nothing that it rests on has them.
OWN_NAMES = frozenset({"robin", "brick", "babs", "alfred", "bat", "os", "architect"})
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Ground:
    """Everything an answer may rest on, in the forms in which checks search it; each form is made at its first use."""

    def __init__(
        self,
        question: str,
        evidence: Evidence,
        own_names: frozenset[str] = frozenset(),
        *,
        asked: str = "",
        today: str = "",
    ) -> None:
        """Take `asked`, the text that the question was made from, if any, and `today`, the date of asking
        (2026-11-21).
        """
        self.question = question
        self.evidence = evidence
        self._own_names = own_names
        self._asked = asked
        self._today = today
        turns = (f"{turn.question}\n{turn.answer}" for turn in evidence.turns)
        #: Everything but documents: the question, the text it was made from, and the conversation.
        self.said = "\n".join((question, asked, *(summary.text for summary in evidence.view), *turns))

    @cached_property
    def text(self) -> str:
        """Return everything as one text."""
        return "\n".join((*(each.text for each in self.evidence.passages), self.said))

    @cached_property
    def figures(self) -> figures.KnownNumbers:
        """Return every number in it, in every reading, and the present year."""
        found = figures.read_numbers(self.text)
        return replace(found, values=found.values | {Decimal(self._today[:4])}) if self._today else found

    @cached_property
    def days(self) -> frozenset[tuple[int, int, int]]:
        """Return every date in it, in every reading, and the date of asking."""
        return dates.read_dates(f"{self.text}\n{self._today}")

    @cached_property
    def times(self) -> frozenset[tuple[int, int]]:
        """Return every time of day in it."""
        return frozenset(time for time, _ in dates.times(self.text))

    @cached_property
    def years(self) -> frozenset[int]:
        """Return every number in it that can be a year."""
        return frozenset(int(value) for value in self.figures.values if 1000 <= value < 3000)

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Return its words, grouped by their first three letters."""
        found: dict[str, set[str]] = {}
        for word in {*words(self.text), *self._own_names}:
            found.setdefault(word[:3], set()).add(word)
        return found

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Return the scripts in which it is mainly written."""
        return languages.main_scripts(self.text)

    @cached_property
    def index(self) -> EvidenceIndex:
        """Return the evidence as an index of its sentences."""
        return index_of(self.evidence, self._asked)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return the passages of the evidence."""
        return self.evidence.passages


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer and what it may rest on; `was_cut` if it would have gone on."""

    answer: str
    ground: Ground
    was_cut: bool = False


class Spot(NamedTuple):
    """A finding of a check: what to mend, as the model is told it, and the words of the answer that it speaks of."""

    what: str
    said: str = ""


def without_spaces(text: str) -> str:
    """Return the letters of a text that belong to scripts without blanks between words."""
    return "".join(_UNSPACED.findall(text))
