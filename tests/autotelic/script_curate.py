"""A process that folds all that is cold, and is killed meanwhile: `script_curate.py HOME POINT NUMBER`.

Points of the commit of that number: `begun` (the changes are made), `voted` (they are in the file), `finished` (they
are durable, and nobody knows).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import structlog
from tests.image.open_image import say

from batos.autotelic.curator import CurationWish
from batos.image.ids import utc_now
from batos.testing import DeadlyStorage, ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams


@asynccontextmanager
async def deadly_uvm(home: Path, clock: Callable[[], datetime] = utc_now) -> AsyncIterator[UVM]:
    """Yield a mind over such a file; what is logged goes to stderr, for stdout has what is said."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

    seams = Seams(opening=DeadlyStorage.in_home(home), clock=clock)
    async with scripted_uvm(home, ScriptedBridge(), memory=False, user="ann", seams=seams) as uvm:
        yield uvm


async def main(home: Path, point: str, number: int) -> None:
    """Say that it begins, then fold."""
    async with deadly_uvm(home) as uvm:
        say("begins")
        DeadlyStorage.arm(point, number)
        await uvm.curator.curate(CurationWish("ann", 0, 99, by_rule=True))
        say("ends")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
