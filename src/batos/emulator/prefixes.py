"""What a runner need not read again: the longest beginning that a prompt shares with one of its last."""

from __future__ import annotations

from collections import deque

PROMPT_SPEED = 10  # prompts are read that many times as fast as answers are said
_KEPT = 8


class Prefixes:
    """The last prompts of one runner, as its cache holds them."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=_KEPT)

    def unread(self, prompt: str, tokens: int) -> int:
        """How many of a prompt's tokens are new, at least one; the prompt is remembered."""
        known = max((_common(prompt, other) for other in self._last), default=0)
        self._last.append(prompt)
        return max(1, tokens - tokens * known // max(len(prompt), 1)) if tokens else 0


def _common(one: str, other: str) -> int:
    """The length of the longest common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
