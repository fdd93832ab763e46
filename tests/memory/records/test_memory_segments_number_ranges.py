"""Sets of numbers as ranges do what sets do."""

from __future__ import annotations

from itertools import pairwise

from BTrees.IOBTree import IOBTree
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.records.memory_segments import NumberRanges, add_range, difference, has_any, has_number, remove_range

changes = st.lists(st.tuples(st.booleans(), st.integers(-9, 40), st.integers(0, 12)), max_size=12)


def made(steps: list[tuple[bool, int, int]]) -> tuple[NumberRanges, set[int]]:
    """The same changes of ranges and of a set."""
    ranges: NumberRanges = IOBTree()
    numbers: set[int] = set()
    for is_added, first, more in steps:
        changed = range(first, first + more + 1)
        (add_range if is_added else remove_range)(ranges, first, first + more)
        numbers = numbers.union(changed) if is_added else numbers.difference(changed)
    return ranges, numbers


@given(changes, changes)
def test_ranges_are_as_sets(steps: list[tuple[bool, int, int]], others: list[tuple[bool, int, int]]) -> None:
    """Added and removed in any order; the ranges do not touch, and what one has and another lacks is found."""
    (ranges, numbers), (less, gone) = made(steps), made(others)
    assert [each for first, last in ranges.items() for each in range(first, last + 1)] == sorted(numbers)
    bounds = list(ranges.items())
    assert all(one[1] + 1 < other[0] for one, other in pairwise(bounds))
    assert [each for first, last in difference(ranges, less) for each in range(first, last + 1)] == sorted(
        numbers - gone
    )
    assert all(has_number(ranges, each) is (each in numbers) for each in range(-12, 60))
    assert has_any(ranges, 0, 9) is any(each in numbers for each in range(10))
