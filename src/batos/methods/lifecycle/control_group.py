"""Which calls are the control, and which method has to go where a receiver has too many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from batos.image.records import Lineage
from batos.methods.lifecycle import scoring

#: The rules as configured where nobody says otherwise.
EVERY: Final = 10
ACTIVE: Final = 16
LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """How methods live: settings `method_control`, `method_active` and `method_uses`.

    One call in `every` is interpreted as the control (0: none), a receiver has at most `active` active methods, and
    none is judged before it was used `least` times.
    """

    every: int = EVERY
    active: int = ACTIVE
    least: int = LEAST


def is_control(mission: str, selector: str, every: int) -> bool:
    """Whether this mission's calls of the method are interpreted: the same answer each time it is asked.

    >>> [is_control("m-1", f"slot{number}_", 3) for number in range(6)].count(True)
    2
    """
    if every == 0:
        return False
    digest = hashlib.sha256(f"{mission} {selector}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % every == 0


def worst(lineages: Iterable[Lineage]) -> Lineage:
    """Of active methods the one with the worst outcome; of equal ones the least used, then the first by name.

    One that was never used counts as one that fails half of the time: better than what fails more, worse than what
    has proved itself.
    """
    return min(lineages, key=lambda each: (-scoring.rate(scoring.recent(each)), _calls(each), each.selector))


def _calls(lineage: Lineage) -> int:
    return int(scoring.recent(lineage)["calls"])
