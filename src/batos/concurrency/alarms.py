"""Deadlines of missions: one timer each, by the clock that every part is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from batos.protocol.errors import TimedOut

#: Seconds after which the clock is looked at again: timers count none while a machine sleeps, and know nothing of a
#: clock that is set forward.
LOOK: Final = 60.0


class Alarms:
    """Rings once for each mission whose deadline has passed; `ring` is called on the loop, with its id."""

    def __init__(self, clock: Callable[[], datetime], ring: Callable[[str], None], look: float = LOOK) -> None:
        self._clock = clock
        self._ring = ring
        self._look = look
        self._set: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._set)

    def set(self, mission: str, deadline: str) -> None:
        """Set a mission's alarm for its deadline (ISO 8601); a passed deadline rings at once."""
        self.drop(mission)
        left = min(max(0.0, self._remaining_seconds(deadline)), self._look)
        self._set[mission] = asyncio.get_running_loop().call_later(left, self._due, mission, deadline)

    def has_passed(self, deadline: str) -> bool:
        """Test if a deadline has passed."""
        return self._remaining_seconds(deadline) <= 0

    def _remaining_seconds(self, deadline: str) -> float:
        return (datetime.fromisoformat(deadline) - self._clock()).total_seconds()

    def _due(self, mission: str, deadline: str) -> None:
        if not self.has_passed(deadline):
            # This was a look before the deadline, or the clock was set back meanwhile.
            self.set(mission, deadline)
            return
        del self._set[mission]
        self._ring(mission)

    def drop(self, mission: str) -> None:
        """Cancel a mission's alarm."""
        handle = self._set.pop(mission, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """Cancel every alarm."""
        for mission in tuple(self._set):
            self.drop(mission)


def timeout_error(mission: str, deadline: str) -> TimedOut:
    """Return the TimedOut error for a mission whose deadline passed."""
    return TimedOut(
        f"it had no answer by its deadline, {deadline}",
        field="deadline",
        remedy=f"Ask again with a later deadline; `--ancestor {mission}` pays for nothing twice.",
    )
