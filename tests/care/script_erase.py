"""A process that is told a secret and erases it, and is killed behind the commit by which that is at a stage.

The arguments: its folder, the URIs of image and journal, and the stage.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.agency.acting import LASTING
from tests.care.secret_mind import SECRET, tell, told_mind
from ZODB.Connection import Connection

from batos.image import roots
from batos.records import redaction


async def main(folder: Path, image: str, journal: str, stage: str) -> None:
    """Tell, erase, and die."""
    finish = Connection.tpc_finish

    def end_at_stage(self: Connection, transaction: Any) -> None:
        finish(self, transaction)
        left = redaction.describe_erasure(roots.root_of(self))
        if left is not None and left["stage"] == stage:
            os.kill(os.getpid(), signal.SIGKILL)

    Connection.tpc_finish = end_at_stage  # type: ignore[method-assign]
    async with told_mind(folder, image=image, journal=journal, lease=LASTING) as (mind, home):
        await tell(mind, home)
        await mind.ask("erase", target=SECRET, user="tester")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
