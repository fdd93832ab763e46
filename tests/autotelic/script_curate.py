"""A process that folds all that is cold, and is killed meanwhile: `script_curate.py HOME POINT NUMBER`.

Points of the commit of that number: `begun` (the changes are made), `voted` (they are in the file), `finished` (they
are durable, and nobody knows).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from tests.image.open_image import say

from batos.autotelic.curator import CurationWish
from batos.image.filestorage import SoundFileStorage
from batos.image.ids import utc_now
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams


class Deadly(SoundFileStorage):
    """Kills its process at a point of one of the commits that follow once it is armed."""

    armed = ""
    left = 0

    def _at(self, point: str) -> None:
        if type(self).armed == point:
            type(self).left -= 1
            if type(self).left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def tpc_begin(self, transaction: Any, *more: Any) -> Any:
        """Every change of the commit has been made."""
        self._at("begun")
        return super().tpc_begin(transaction, *more)

    def tpc_vote(self, transaction: Any) -> Any:
        """It is in the file, with the mark of what may still be undone."""
        found = super().tpc_vote(transaction)
        self._at("voted")
        return found

    def tpc_finish(self, transaction: Any, *more: Any) -> Any:
        """It is durable."""
        found = super().tpc_finish(transaction, *more)
        self._at("finished")
        return found


@asynccontextmanager
async def deadly_uvm(home: Path, clock: Callable[[], datetime] = utc_now) -> AsyncIterator[UVM]:
    """Yield a mind over such a file; what is logged goes to stderr, for stdout has what is said."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

    def storage() -> Deadly:
        return Deadly(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))

    seams = Seams(opening=lambda given: replace(given, image_factory=storage), clock=clock)
    async with scripted_uvm(home, ScriptedBridge(), memory=False, user="ann", seams=seams) as uvm:
        yield uvm


async def main(home: Path, point: str, number: int) -> None:
    """Say that it begins, then fold."""
    async with deadly_uvm(home) as uvm:
        say("begins")
        Deadly.armed, Deadly.left = point, number
        await uvm.curator.curate(CurationWish("ann", 0, 99, by_rule=True))
        say("ends")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
