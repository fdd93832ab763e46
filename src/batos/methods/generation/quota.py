"""Limits of generation: calls, tokens and seconds of one, and the number of generations for each mission and hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from batos.inference.cost import SpendingLimits

#: A generation in lean form may make so many times as many calls, each of which costs a tenth.
MORE_CALLS: Final = 2
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """The settings `generation_calls`, `_tokens`, `_seconds`, `mission_generations`, `hour_generations`, `_again`.

    `again` is the time in seconds before a failed generation may be tried again.
    """

    calls: int = 4
    tokens: int = 24_000
    seconds: float = 600.0
    mission: int = 16
    hour: int = 60
    again: float = 3_600.0

    def limits(self, *, lean: bool) -> SpendingLimits:
        """Return the spending limits of one generation's session, in lean or full form."""
        return SpendingLimits(self.calls * (MORE_CALLS if lean else 1), self.tokens, self.seconds)


@dataclass(slots=True)
class GenerationQuota:
    """The number of generations begun in the last hour by this process, by its clock."""

    allowance: GenerationLimits
    clock: Callable[[], datetime]
    _begun: deque[datetime] = field(default_factory=deque)

    def refusal(self, of_mission: int) -> str:
        """Return the reason to refuse one more generation; "" if there is none.

        `of_mission` is the number of generations that the mission has begun.
        """
        now = self.clock()
        while self._begun and now - self._begun[0] >= _HOUR:
            self._begun.popleft()
        if of_mission >= self.allowance.mission:
            return f"the mission has begun {of_mission} generations, and its limit is reached (mission_generations)"
        if len(self._begun) >= self.allowance.hour:
            return f"{len(self._begun)} generations began within the hour, and the limit is reached (hour_generations)"
        return ""

    def take(self) -> None:
        """Count a generation that begins now."""
        self._begun.append(self.clock())

    def give_back(self) -> None:
        """Remove the last generation from the count, because nothing was paid for it.

        The coder, Ollama or a cell was missing.
        """
        if self._begun:
            self._begun.pop()
