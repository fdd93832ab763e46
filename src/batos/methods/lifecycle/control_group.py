"""The control group: calls that are interpreted for comparison, and the worst method where a receiver has too many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from batos.image.records import Lineage
from batos.methods.lifecycle import scoring

#: The defaults of the settings.
EVERY: Final = 10
ACTIVE: Final = 16
LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings `method_control`, `method_active` and `method_uses`.

    Of each `every` calls one is interpreted as the control (0: none), a receiver has at most `active` active methods,
    and no method is judged before it was used `least` times.
    """

    every: int = EVERY
    active: int = ACTIVE
    least: int = LEAST


def is_control(mission: str, selector: str, every: int) -> bool:
    """Test if this mission interprets the method's intent as a control.

    The answer depends on nothing but the arguments.

        >>> [is_control("m-1", f"slot{number}_", 3) for number in range(6)].count(True)
        2
    """
    if every == 0:
        return False
    digest = hashlib.sha256(f"{mission} {selector}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % every == 0


def worst(lineages: Iterable[Lineage]) -> Lineage:
    """Return the lineage with the highest rate of bad uses; of equal ones the least used, then the first by selector.

    A method that was never used counts as failing half of the time, so a method that fails more often than that goes
    first.
    """
    return min(lineages, key=lambda each: (-scoring.rate(scoring.recent(each)), _calls(each), each.selector))


def _calls(lineage: Lineage) -> int:
    """Return the number of uses since the active revision became active."""
    return int(scoring.recent(lineage)["calls"])
