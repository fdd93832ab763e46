"""A process that acts on the world and is killed at a point of an effect's life: PLACE URL POINT GRANT.

GRANT is one of `acting`, or `new` for a whole new file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.agency.acting import acting

from batos.agency.releaser import Point


async def main(place: Path, url: str, point: str, grant: str) -> None:
    """Send one message to a capability; it is never told what came of it."""

    async def die(at: Point, effect: str) -> None:
        if at == point:
            os.kill(os.getpid(), signal.SIGKILL)

    async with acting(place, url=url, hold=die, memory=False) as mind:
        given = ("log.txt", "A line.") if grant in ("notes", "new") else ({"text": "A line."},)
        selector = "write_" if grant == "new" else ""
        await mind.send("notes" if grant == "new" else grant, *given, selector=selector)
        await mind.uvm.releaser.release_all()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
