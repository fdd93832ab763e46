"""How the time of a work grows with the size of what it is given, whatever the pace of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Times that the larger work is as large as the smaller one, and that it may take as long: squared it would be 64.
LARGER, MOST = 8, 28.0
_ROUNDS = 5


def growth(work: Callable[[int], object], small: int, clock: Callable[[], float] = time.thread_time) -> float:
    """How many times as long the work takes for what is `LARGER` times as large; of each the best of several counts.

    The processor's seconds of this thread are counted; by `time.process_time` those of all threads. Whatever else runs
    on the machine only adds to them: where the larger work seems to take too long, both are done again.
    """
    larger, smaller = float("inf"), float("inf")
    for _ in range(_ROUNDS):
        larger = min(larger, least_seconds(work, LARGER * small, clock))
        smaller = min(smaller, least_seconds(work, small, clock))
        if larger / smaller < MOST:
            break
    return larger / smaller


def least_seconds(work: Callable[[int], object], size: int, clock: Callable[[], float] = time.thread_time) -> float:
    """The seconds that a work of a size takes at best."""
    taken = []
    for _ in range(3):
        began = clock()
        work(size)
        taken.append(clock() - began)
    return max(min(taken), 1e-6)
