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
from pathlib import Path
from typing import Any

import structlog
from tests.approvals.coder_bridge import Coding, waiting
from tests.image.open_image import say

from batos.testing import DeadlyStorage, scripted_uvm
from batos.uvm import Seams


async def main(home: Path, point: str) -> None:
    """Say how many wait, then say yes to them."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for what is said

    def told(event: str, keys: Mapping[str, Any]) -> None:
        if event == "approval.answered" and point == "told":
            os.kill(os.getpid(), signal.SIGKILL)

    seams = Seams(opening=DeadlyStorage.in_home(home))
    async with scripted_uvm(home, Coding(), memory=False, install="ask", seams=seams) as uvm:
        uvm.events.subscribe(told)
        names = [each["id"] for each in waiting(uvm)]
        say(len(names))
        DeadlyStorage.arm(point)
        await uvm.approvals.approve(names, "ada")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
