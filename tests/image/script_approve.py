"""A process that approves everything that waits, and is killed in the middle of it: `script_approve.py HOME POINT`.

Points: `begun` (it is installed, and nothing of that is written), `voted` (written, and not yet so), `finished` (the
commit is there, and nobody knows), `told` (whoever listens was told, and no mission is woken).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from tests.approvals.coder_bridge import Coding, waiting
from tests.image.open_image import say

from batos.image.filestorage import SoundFileStorage
from batos.testing import scripted_uvm
from batos.uvm import Seams


class Deadly(SoundFileStorage):
    """Kills its process at a point of the first commit that follows once it is armed."""

    armed = ""

    def _at(self, point: str) -> None:
        if type(self).armed == point:
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


async def main(home: Path, point: str) -> None:
    """Say how many wait, then say yes to them."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for what is said

    def storage() -> Deadly:
        return Deadly(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))

    def told(event: str, keys: Mapping[str, Any]) -> None:
        if event == "approval.answered" and point == "told":
            os.kill(os.getpid(), signal.SIGKILL)

    seams = Seams(opening=lambda given: replace(given, image_factory=storage))
    async with scripted_uvm(home, Coding(), memory=False, install="ask", seams=seams) as uvm:
        uvm.events.subscribe(told)
        names = [each["id"] for each in waiting(uvm)]
        say(len(names))
        Deadly.armed = point
        await uvm.approvals.approve(names, "ada")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
