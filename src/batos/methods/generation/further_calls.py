"""Makes further calls of a method from those of its checks, of the same types, to compare two methods by.

Nobody knows what a further call must return. Two drafts that were written apart and return the same are more likely to
be right than one that passes two checks by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from batos.cell.values import Plain
from batos.methods.generation.method_checks import Check, display

#: The most further calls, and the fewest that must be answered alike by two methods.
MOST: Final = 12
LEAST: Final = 3


def further_calls(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return calls that no check makes, each with one argument changed, at most MOST.

    >>> [list(call.arguments) for call in further_calls([Check(["ab", 2])])]
    [['ab ab', 2], ['ba', 2], ['aab', 2], ['ab', 3], ['ab', 7]]
    """
    known = {display(list(check.arguments)) for check in checks}
    found: list[Check] = []
    for check in checks:
        for arguments in _variants(check.arguments):
            if display(arguments) not in known:
                known.add(display(arguments))
                found.append(Check(arguments, check.before, check.replies))
    return tuple(found[:: max(1, -(-len(found) // MOST))])


def _variants(arguments: Sequence[Plain]) -> Iterator[list[Plain]]:
    """Yield the arguments with one of them changed."""
    for place, value in enumerate(arguments):
        for other in _values_beside(value):
            yield [*arguments[:place], other, *arguments[place + 1 :]]


def _values_beside(value: Plain) -> Iterable[Plain]:
    """Return values of the same type, made of the same parts."""
    if isinstance(value, bool) or not value:
        return ()
    if isinstance(value, str):
        return f"{value} {value}", value[::-1], value[:1] + value
    if isinstance(value, int | float):
        return value + 1, value * 3 + 1
    if isinstance(value, list):
        return value[::-1], value[1:], [*value, value[0], value[-1]], [*value[1:], *value, *value]
    return ()
