"""Puts the right result in the place of a wrong one that an answer states for a sum of numbers of its documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from batos.gate.ground import Draft
from batos.gate.occurrence import sums_of
from batos.gate.values import figures
from batos.gate.values.figures import Figure
from batos.gate.values.sums import WrittenSum

_PART: Final = re.compile(r"[.,](\d+)\Z")
_GROUPED: Final = re.compile(r"\d([.,'’ \u00a0\u202f])\d{3}(?!\d)")
#: Digits of a group, which a decimal part has not.
_GROUP: Final = 3


def correct_sums(draft: Draft) -> str:
    """Return an answer whose wrong sums have their right results; "" where none is corrected.

    Only totals and differences are, of numbers that the documents or the question have, where their marks have one
    meaning. A wrong result that the answer repeats is replaced everywhere, unless a document has that number too.
    """
    if "```" in draft.answer:
        return ""
    answer = draft.answer
    for each in sums_of(draft.answer)[1]:
        if _is_sure(draft, each):
            right = write_like(each.grouped, [figure.text for figure in (*each.terms, each.stated)])
            answer = re.sub(rf"(?<![\d.,]){re.escape(each.stated.text)}(?![.,]?\d)", right, answer)
    return "" if answer == draft.answer else answer


def _is_sure(draft: Draft, made: WrittenSum) -> bool:
    """Test if a sum is wrong, and its right result beyond doubt."""
    known, numbers = draft.ground.figures, (*made.terms, made.stated)
    plain = not any(each.scales or each.is_percent or each.measured for each in numbers)
    return (
        not made.is_right
        and made.is_addition
        and (len(made.results) == 1 or _are_thousands(numbers))
        and made.grouped >= 0
        and plain
        and all(figures.is_known(each, known) for each in made.terms)
        and not made.stated.values & known.values
    )


def _are_thousands(numbers: Sequence[Figure]) -> bool:
    """Test if the numbers that could be read in two ways all have one mark of thousands, and no other has that mark."""
    marks = {found[0][0] for each in numbers if (found := _PART.search(each.text)) and len(found[1]) == _GROUP}
    decimals = {found[0][0] for each in numbers if (found := _PART.search(each.text)) and len(found[1]) != _GROUP}
    return len(marks) == 1 and not marks & decimals


def write_like(number: Decimal, examples: Sequence[str]) -> str:
    """Return a number with the marks and the decimals that other numbers of its sum have.

    >>> write_like(Decimal("4400.95"), ["7.738,45", "3.337,50"]), write_like(Decimal(1300), ["1000", "300"])
    ('4.400,95', '1300')
    """
    group = next((found[1] for each in examples if (found := _GROUPED.search(each))), "")
    parts = [found for each in examples if (found := _PART.search(each)) and len(found[1]) != _GROUP]
    mark = next((found[0][0] for found in parts), "," if group == "." else ".")
    digits = max([len(found[1]) for found in parts] + [max(0, -int(number.normalize().as_tuple().exponent))])
    whole, _, part = f"{number:,.{digits}f}".partition(".")
    return whole.replace(",", group) + (mark + part if part else "")
