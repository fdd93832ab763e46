"""The part of `heapq` that methods use; lists are ordered as CPython orders them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _up(heap: list[Any], start: int, at: int) -> None:
    item = heap[at]
    while at > start:
        parent = (at - 1) // 2
        if not item < heap[parent]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


def _down(heap: list[Any], at: int) -> None:
    start, end, item = at, len(heap), heap[at]
    child = 2 * at + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _up(heap, start, at)


def heapify(heap: list[Any]) -> None:
    """Make a list a heap."""
    for at in range(len(heap) // 2 - 1, -1, -1):
        _down(heap, at)


def heappush(heap: list[Any], item: object) -> None:
    """Add an item."""
    heap.append(item)
    _up(heap, 0, len(heap) - 1)


def heappop(heap: list[Any]) -> Any:
    """Take the smallest item; IndexError when there is none."""
    last = heap.pop()
    if not heap:
        return last
    smallest = heap[0]
    heap[0] = last
    _down(heap, 0)
    return smallest


def heappushpop(heap: list[Any], item: object) -> Any:
    """Add an item, then take the smallest."""
    if not heap or not heap[0] < item:
        return item
    return heapreplace(heap, item)


def heapreplace(heap: list[Any], item: object) -> Any:
    """Take the smallest item, then add one."""
    smallest = heap[0]
    heap[0] = item
    _down(heap, 0)
    return smallest


def nsmallest(n: int, iterable: Iterable[Any], key: Callable[[Any], Any] | None = None) -> list[Any]:
    """Return the n smallest items, smallest first."""
    return sorted(iterable, key=key)[: max(n, 0)]


def nlargest(n: int, iterable: Iterable[Any], key: Callable[[Any], Any] | None = None) -> list[Any]:
    """Return the n largest items, largest first."""
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def merge(*iterables: Iterable[object], key: Callable[[Any], Any] | None = None, reverse: bool = False) -> list[Any]:
    """Merge sorted iterables into one sorted list."""
    return sorted([item for each in iterables for item in each], key=key, reverse=reverse)
