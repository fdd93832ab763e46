"""A node that works with others on an image, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tests.image.lease_clock import LEASE
from tests.image.open_image import say
from tests.missions.pace import PATIENT

from batos.config import Settings
from batos.events import Events
from batos.image.nodes.lease import read_clock
from batos.uvm import UVM, Seams, open_uvm

#: Missions that it runs at once.
AT_ONCE = 4


@asynccontextmanager
async def node_at_work(
    home: Path, image: str, journal: str, url: str, clock: Callable[[], float] = read_clock
) -> AsyncIterator[UVM]:
    """Open a node that takes up what is queued."""
    settings = Settings(
        home=home, user="tester", image=image, journal=journal, ollama_host=url, install="never", missions=AT_ONCE,
        lease=LEASE, vram="80GiB", **PATIENT,
    )  # fmt: skip
    seams = Seams(opening=lambda given: replace(given, lease_clock=clock))
    async with open_uvm(settings, Events(log=False), seams) as uvm:
        await uvm.readiness.genesis()
        uvm.sharing.take_up()
        yield uvm


async def main(home: Path, image: str, journal: str, url: str) -> None:
    """Say when it works."""
    async with node_at_work(home, image, journal, url):
        say("ready")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
