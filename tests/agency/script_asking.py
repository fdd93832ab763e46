"""A process that says yes to an effect and is killed at a point of that commit: PLACE URL POINT."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.agency.acting import acting

from batos.testing import DeadlyStorage
from batos.uvm import Seams


async def main(place: Path, url: str, point: str) -> None:
    """Send one message to a capability of a program that knows no keys, and say yes to it."""
    seams = Seams(opening=DeadlyStorage.in_home(place / "home"))
    async with acting(place, url=url, memory=False, seams=seams) as mind:
        await mind.send("dark", {"text": "A line."}, yes=False)
        names = await mind.asked()
        DeadlyStorage.arm(point)
        await mind.ask("approve", approvals=names, user="tester")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
