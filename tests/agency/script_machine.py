"""A node of a machine that is killed between an append and its record: PLACE IMAGE MACHINE LEASE."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from tests.agency.acting import acting

from batos.agency.releaser import Point
from batos.image.image import Opening
from batos.image.nodes.lease import HostIdentity
from batos.uvm import Seams


async def main(place: Path, image: str, machine: str, lease: float) -> None:
    """Append a line; nobody is ever told."""

    def opening(usual: Opening) -> Opening:
        return replace(usual, host=HostIdentity(machine, f"host-{machine}"))

    async def die(at: Point, effect: str) -> None:
        if at == "done":
            os.kill(os.getpid(), signal.SIGKILL)

    seams = Seams(opening=opening)
    async with acting(place, hold=die, seams=seams, memory=False, image=image, journal="", lease=lease) as mind:
        await mind.send("notes", "log.txt", "A line.")
        await mind.uvm.releaser.release_all()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])))
