"""A door for tests of what follows a call: nobody is asked, and no file is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batos.cli.doors.idle_door import IdleDoor
from batos.protocol.brief import File


class LoneDoor(IdleDoor):
    """A door to a server; a subclass says what a call does."""

    served = True
    holder = ""

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Nothing."""
        return []

    async def attends(self, mission: str) -> bool:
        """Nobody is asked."""
        return False

    async def begin(self, mission: str) -> None:
        """Nothing."""
