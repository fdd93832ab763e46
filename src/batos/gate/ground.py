"""What an answer may rest on, and the draft of one: what the gate's checks are given."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from batos.gate import dates, figures, languages
from batos.gate.citing import Quoted
from batos.memory.evidence import Evidence, Passage
from batos.memory.terms import line_of, words

#: Names that an answer may use although nothing that it rests on has them.
OWN_NAMES = frozenset({"robin", "brick", "babs", "alfred", "bat", "os", "architect"})
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Ground:
    """What an answer may rest on, in the forms in which checks look things up; each is made when first asked for."""

    def __init__(
        self,
        question: str,
        evidence: Evidence,
        own_names: frozenset[str] = frozenset(),
        *,
        asked: str = "",
        today: str = "",
    ) -> None:
        """`asked` is what the question was made from, if it was; `today` the date of asking (2026-11-21)."""
        self.question = question
        self.evidence = evidence
        self._own_names = own_names
        self._today = today
        turns = (f"{turn.question}\n{turn.answer}" for turn in evidence.turns)
        #: What is not a document: the question, what it was made from, and the conversation.
        self.said = "\n".join((question, asked, *(summary.text for summary in evidence.view), *turns))

    @cached_property
    def text(self) -> str:
        """All of it, for checks of what occurs."""
        return "\n".join((*(each.text for each in self.evidence.passages), self.said))

    @cached_property
    def figures(self) -> figures.Known:
        """Every number in it, in every reading, and the year."""
        found = figures.known(self.text)
        return replace(found, values=found.values | {Decimal(self._today[:4])}) if self._today else found

    @cached_property
    def days(self) -> frozenset[tuple[int, int, int]]:
        """Every date in it, in every reading, and that of asking."""
        return dates.known(f"{self.text}\n{self._today}")

    @cached_property
    def times(self) -> frozenset[tuple[int, int]]:
        """Every time of day in it."""
        return frozenset(time for time, _ in dates.times(self.text))

    @cached_property
    def years(self) -> frozenset[int]:
        """Every number in it that can be a year."""
        return frozenset(int(value) for value in self.figures.values if 1000 <= value < 3000)

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Its words by their first three letters."""
        found: dict[str, set[str]] = {}
        for word in {*words(self.text), *self._own_names}:
            found.setdefault(word[:3], set()).add(word)
        return found

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts that it is mainly written in."""
        return languages.main_scripts(self.text)

    @cached_property
    def lines(self) -> dict[int, str]:
        """The words of each passage, a blank around each."""
        return {each.number: line_of(each.text) for each in self.evidence.passages}

    @cached_property
    def letters(self) -> dict[int, str]:
        """The letters of each passage that stand without blanks, one after another; 0 is what is no document."""
        return {0: unspaced(self.said), **{each.number: unspaced(each.text) for each in self.evidence.passages}}

    @cached_property
    def said_line(self) -> str:
        """The words of question and conversation, a blank around each."""
        return line_of(self.said)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages of the evidence."""
        return self.evidence.passages


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer with what it claims. `queries` counts the sub-queries, `open_queries` are those without an answer."""

    answer: str
    citations: tuple[Quoted, ...]
    unanswered: frozenset[int]
    ground: Ground
    queries: int = 1
    open_queries: frozenset[int] = frozenset()
    #: Whether the reply reached the length at which its schema cuts.
    cut: bool = False


def unspaced(text: str) -> str:
    """The letters of a text that belong to scripts without blanks between words."""
    return "".join(_UNSPACED.findall(text))
