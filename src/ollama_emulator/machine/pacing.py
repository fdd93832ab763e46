"""Speed of the simulated machine: the time to read a prompt, and the time at which each token is due."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ollama_emulator.clocks import Clock

PROMPT_SPEED = 20  # prompts are read this many times faster than answers are generated
_KEPT = 8


class Prefixes:
    """The last prompts of a runner, whose tokens are cached: the beginning that a new prompt shares costs no time."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=_KEPT)

    def count_unread(self, prompt: str, tokens: int) -> int:
        """Remember a prompt of `tokens` tokens; return the number that are not cached, at least 1 unless it is
        empty.
        """
        known = max((_common(prompt, other) for other in self._last), default=0)
        self._last.append(prompt)
        return max(1, tokens - tokens * known // max(len(prompt), 1)) if tokens else 0


@dataclass(slots=True)
class Pace:
    """The pace of one answer: `rate` in tokens a second, 0 for no delay. `read_ns` is the time spent on its prompt."""

    clock: Clock
    rate: float
    read_ns: int = 0
    _began_ns: int = 0
    _said: int = 0

    async def read(self, tokens: int) -> None:
        """Sleep as long as reading `tokens` tokens of a prompt takes."""
        if self.rate and tokens:
            self.read_ns = int(tokens * 10**9 / (self.rate * PROMPT_SPEED))
            await self.clock.sleep(self.read_ns / 10**9)
        self._began_ns = self.clock.now_ns()

    async def say(self) -> None:
        """Sleep until the next token is due. Delays of earlier tokens are made up for, so that the rate holds."""
        self._said += 1
        left = self._began_ns + int(self._said * 10**9 / self.rate) - self.clock.now_ns()
        await self.clock.sleep(max(0, left) / 10**9)


def _common(one: str, other: str) -> int:
    """Return the length of the longest common beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
