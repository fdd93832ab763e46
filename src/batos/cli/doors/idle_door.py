"""The methods of a door behind which this process runs no missions and makes no methods."""

from __future__ import annotations

from batos.protocol.method_documents import LateReport


class IdleDoor:
    """The base of doors behind which this process does no work, so that nothing is left, learnt or waited for."""

    __slots__ = ()

    async def left_behind(self) -> list[str]:
        """Return none: no mission is settled here."""
        return []

    async def start_due(self, mission: str) -> None:
        """Do nothing: no work follows here."""

    async def learn(self, mission: str) -> LateReport:
        """Make no methods here."""
        return {"made": [], "left": 0, "new": 0}

    async def keep_learning(self) -> None:
        """Do nothing: no methods are made here."""
