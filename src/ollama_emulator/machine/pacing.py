"""The speed of the simulated machine: how long a prompt takes to read, and when each token is due."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ollama_emulator.clocks import Clock

PROMPT_SPEED = 20  # prompts are read that many times as fast as answers are said
_KEPT = 8


class Prefixes:
    """The last prompts of one runner, as its cache holds them: what a new one begins with is not read again."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=_KEPT)

    def unread(self, prompt: str, tokens: int) -> int:
        """Remember a prompt, and return how many of its tokens are new, at least one."""
        known = max((_common(prompt, other) for other in self._last), default=0)
        self._last.append(prompt)
        return max(1, tokens - tokens * known // max(len(prompt), 1)) if tokens else 0


@dataclass(slots=True)
class Pace:
    """The speed of one answer: `rate` tokens a second, 0 for at once; `read_ns` is what its prompt took."""

    clock: Clock
    rate: float
    read_ns: int = 0
    _began_ns: int = 0
    _said: int = 0

    async def read(self, tokens: int) -> None:
        """Let the time pass that so many new tokens of a prompt take."""
        if self.rate and tokens:
            self.read_ns = int(tokens * 10**9 / (self.rate * PROMPT_SPEED))
            await self.clock.sleep(self.read_ns / 10**9)
        self._began_ns = self.clock.now_ns()

    async def say(self) -> None:
        """Wait until one more token is due; what came late is made up for, so that the rate holds."""
        self._said += 1
        left = self._began_ns + int(self._said * 10**9 / self.rate) - self.clock.now_ns()
        await self.clock.sleep(max(0, left) / 10**9)


def _common(one: str, other: str) -> int:
    """Return the length of the longest common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
