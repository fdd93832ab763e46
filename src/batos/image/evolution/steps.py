"""The steps of the image's evolution, one for each format after the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from batos.image.evolution.fact_families import find_facts
from batos.image.evolution.forged_wishes import find_wishes
from batos.image.evolution.ledger_sums import find_lineages
from batos.image.roots import Root

#: Yields what a step has still to change behind a key, in the order of the keys: the key, and the change.
Finder: TypeAlias = Callable[[Root, str], Iterator[tuple[str, Callable[[], None]]]]


class EvolutionStep(NamedTuple):
    """A step: the format that the image has after it, what it does, and what finds the records it has to change.

    A record that has the new form is not found again. So a step that was cut off goes on where it was, and a step that
    runs twice changes nothing.
    """

    number: int
    what: str
    find: Finder


#: In the order of their numbers, without a gap; the last one is `roots.FORMAT`. A step is never changed or removed once
#: a version with it was released.
STEPS: Final = (
    EvolutionStep(2, "wishes for forged tools are kept under slot and intent", find_wishes),
    EvolutionStep(3, "facts name the family of their key", find_facts),
    EvolutionStep(4, "sums of ledgers count undone uses", find_lineages),
)
