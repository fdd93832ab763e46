"""The runners that are taken to be in memory: what a load puts out of it is learnt from the loads that followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

#: The seconds that a load is taken to last before one was seen.
LOAD_SECONDS: Final = 5.0
#: A load that took less, in seconds, was none: a runner that is there is found in milliseconds.
LOADED: Final = 0.1
#: Seconds for which the daemon surely keeps a runner that nobody asks: less than its five minutes.
KEPT_ALIVE: Final = 240.0


class Runner(NamedTuple):
    """A runner that a call needs in memory: a base's blob, and the adapters and options that it is loaded with.

    The daemon keeps one runner of a base. A runner that is not `on_card` is on the processor, and in nobody's way.
    """

    base: str
    loaded_with: tuple[object, ...] = ()
    on_card: bool = True


@dataclass(slots=True)
class Residents:
    """The runners in memory, the one used last at the end. Moments are in seconds of any clock that only grows.

    Two bases are taken to fit together until one has to be loaded again after the other was: from then on a load of one
    takes the place of the other, until one turns out to have been there all the time.
    """

    _there: list[Runner] = field(default_factory=list)
    #: Pairs of bases that were seen not to fit together.
    _apart: set[frozenset[str]] = field(default_factory=set)
    #: When each base was last used, and the bases that were loaded since.
    _used: dict[str, tuple[float, list[str]]] = field(default_factory=dict)
    #: The runner that is loaded next, and those in whose place.
    _expected: tuple[Runner, Sequence[Runner]] | None = None
    _seconds: dict[str, float] = field(default_factory=dict)

    def __contains__(self, runner: object) -> bool:
        """Test if a runner is taken to be in memory."""
        return runner in self._there

    def victims(self, runner: Runner) -> list[Runner]:
        """Return the runners that a load of another puts out of memory."""
        others = [each for each in self._there if each != runner]
        return [each for each in others if each.base == runner.base or _pair(each, runner) in self._apart]

    def replace(self, runner: Runner, victims: Sequence[Runner]) -> None:
        """Note that a runner is loaded next, in the place of others."""
        self._there = [*(each for each in self._there if each not in victims), runner]
        self._expected = runner, victims
        for _, loaded in self._used.values():
            loaded.append(runner.base)

    def note(self, runner: Runner, seconds: float, now: float) -> None:
        """Note that a runner answers at a moment, and how long its load took, in seconds (0: it was there)."""
        expected, used = self._expected, self._used.get(runner.base)
        is_expected = expected is not None and expected[0] == runner
        if seconds >= LOADED:
            self._seconds[runner.base] = (self._seconds.get(runner.base, seconds) + seconds) / 2
            if not is_expected and used is not None and used[1] and now - used[0] < KEPT_ALIVE:
                # The base that was loaded last took its place, and has lost it again.
                self._apart.add(frozenset((runner.base, used[1][-1])))
                self._there = [each for each in self._there if each.base != used[1][-1]]
        elif is_expected and expected is not None:
            self._find_together(runner, expected[1])
        self._expected = None if is_expected else expected
        self._there = [*(each for each in self._there if each != runner), runner]
        self._used[runner.base] = now, []

    def _find_together(self, runner: Runner, victims: Sequence[Runner]) -> None:
        """Take a runner and those that were to go for it to fit together: it was in memory all the time."""
        for each in victims:
            if each.base != runner.base:
                self._apart.discard(_pair(each, runner))
                self._there.insert(0, each)

    def load_seconds(self, runner: Runner) -> float:
        """Return how long a load of a runner is taken to last, in seconds."""
        return self._seconds.get(runner.base, LOAD_SECONDS)


def _pair(one: Runner, other: Runner) -> frozenset[str]:
    return frozenset((one.base, other.base))
