"""How the time of a work grows with the size of what it is given, whatever the pace of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Times that the larger work is as large as the smaller one, and that it may take as long: squared it would be 64.
LARGER, MOST = 8, 28.0
_ROUNDS = 15


def growth(
    work: Callable[[int], object],
    small: int,
    clock: Callable[[], float] = time.thread_time,
    most: float = MOST,
) -> float:
    """How many times as long the work takes for what is `LARGER` times as large; of each the best of several counts.

    The processor's seconds of this thread are counted; by `time.process_time` those of all threads. Whatever else runs
    on the machine only adds to them: where the larger work seems to take more than `most`, it is done again.
    """
    larger, smaller = float("inf"), least_seconds(work, small, clock)
    for _ in range(_ROUNDS):
        larger = min(larger, least_seconds(work, LARGER * small, clock, rounds=1))
        if larger / smaller < most:
            break
    return larger / smaller


def least_seconds(
    work: Callable[[int], object], size: int, clock: Callable[[], float] = time.thread_time, rounds: int = 3
) -> float:
    """The seconds that a work of a size takes at best."""
    taken = []
    for _ in range(rounds):
        began = clock()
        work(size)
        taken.append(clock() - began)
    return max(min(taken), 1e-6)
