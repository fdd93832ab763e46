"""Sets of whole numbers as ranges in a tree, first number to last: a million numbers in a row are one entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from BTrees.IOBTree import IOBTree

if TYPE_CHECKING:
    #: First number of each range to its last; ranges neither touch nor overlap.
    NumberRanges: TypeAlias = IOBTree[int]
else:
    NumberRanges = IOBTree


def add_range(ranges: NumberRanges, first: int, last: int) -> None:
    """Add the numbers from the first to the last.

    >>> add_range(some := IOBTree({1: 3, 9: 9}), 4, 6)
    >>> dict(some)
    {1: 6, 9: 9}
    """
    for begin, end in list(_meeting(ranges, first - 1, last + 1)):
        first, last = min(first, begin), max(last, end)
        del ranges[begin]
    ranges[first] = last


def remove_range(ranges: NumberRanges, first: int, last: int) -> None:
    """Take the numbers from the first to the last out, as far as they are there.

    >>> remove_range(some := IOBTree({1: 9}), 3, 4)
    >>> dict(some)
    {1: 2, 5: 9}
    """
    for begin, end in list(_meeting(ranges, first, last)):
        del ranges[begin]
        if begin < first:
            ranges[begin] = first - 1
        if end > last:
            ranges[last + 1] = end


def has_number(ranges: NumberRanges, number: int) -> bool:
    """Test if a number is there."""
    return has_any(ranges, number, number)


def has_any(ranges: NumberRanges, first: int, last: int) -> bool:
    """Test if any number from the first to the last is there."""
    return any(True for _ in _meeting(ranges, first, last))


def difference(ranges: NumberRanges, others: NumberRanges) -> Iterator[tuple[int, int]]:
    """Yield the ranges of numbers that are in the one set and not in the other.

    >>> list(difference(IOBTree({1: 9}), IOBTree({3: 4, 9: 12})))
    [(1, 2), (5, 8)]
    """
    for first, last in ranges.items():
        for begin, end in _meeting(others, first, last):
            if first < begin:
                yield first, begin - 1
            first = end + 1
        if first <= last:
            yield first, last


def _meeting(ranges: NumberRanges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that have a number from the first to the last."""
    if ranges and ranges.minKey() < first and ranges[before := ranges.maxKey(first - 1)] >= first:
        yield before, ranges[before]
    yield from ranges.items(first, last)
