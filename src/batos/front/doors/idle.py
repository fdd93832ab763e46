"""What doors have in common behind which this process works at nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Idle:
    """Shared by doors behind which this process works at nothing: nothing is left, learnt or waited for there."""

    __slots__ = ()

    async def left_behind(self) -> list[str]:
        """As Door has it: nothing."""
        return []

    async def afterwards(self, mission: str) -> None:
        """As Door has it: nothing."""

    async def learn(self, mission: str) -> Mapping[str, Any]:
        """As Door has it: nothing."""
        return {"made": [], "left": 0, "new": 0}

    async def keep_learning(self) -> None:
        """As Door has it: nothing."""

    async def rest(self) -> None:
        """As Door has it: at once."""
