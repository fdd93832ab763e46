"""Facts of the mind itself as the computed result of a question, and the check that an answer says no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from batos.gate import figures, numerals
from batos.memory.segmentation import words
from batos.reckoning.reckonings import Reckoning

#: Words behind a figure that tell what it counts, and letters of each that are compared.
_UNITS, _LETTERS = 3, 4


@dataclass(frozen=True, slots=True)
class OwnSentence(Reckoning):
    """Facts as the computed result of a question: an answer stands if it says the figures and no other ones."""

    figures: tuple[str, ...] = ()

    def lead_answer(self, question: str, answer: str) -> str:
        """Return the answer if all that it counts is right and what was asked for is said; else the sentences."""
        return answer if _agrees(answer, self) else self.lead


def _agrees(answer: str, told: OwnSentence) -> bool:
    """Test if an answer says each figure that was asked for, and counts nothing that the sentences do not."""
    said, known = list(_counts(answer)), list(_counts(told.lead))
    values = frozenset(value for figure, _ in known for value in figure)
    spelled = numerals.numbers_in_words(answer)
    alone = len(said) == 1
    return (
        all(_is_said(each, answer, said, spelled) for each in told.figures)
        and spelled <= values | {Decimal(1)}
        and all(
            any(
                value & other and (bool(units & mine) or not (units or mine) or (alone and not mine))
                for other, units in known
            )
            for value, mine in said
        )
    )


def _is_said(
    figure: str, answer: str, said: Iterable[tuple[frozenset[Decimal], frozenset[str]]], spelled: frozenset[Decimal]
) -> bool:
    try:
        value = Decimal(figure)
    except InvalidOperation:
        return bool(figure) and figure.casefold() in answer.casefold()
    return value in spelled or any(value in values for values, _ in said)


def _counts(text: str) -> Iterator[tuple[frozenset[Decimal], frozenset[str]]]:
    """Yield each number of a text, with the beginnings of the words right behind it that tell what it counts."""
    text = figures.plain(text)
    found = figures.find(text)
    ends = [*(each.start for each in found[1:]), len(text)]
    for each, end in zip(found, ends, strict=False):
        behind = re.split(r"[^\w\s-]|\n", text[each.end : end], maxsplit=1)[0]
        yield each.values, frozenset(word[:_LETTERS] for word in words(behind)[:_UNITS])
