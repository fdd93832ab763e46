"""A process that is told a secret and erases it, and is killed right behind one of the commits of that.

The arguments: its folder, the URIs of image and journal, and the number of the commit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.care.secret_mind import SECRET, tell, told_mind
from tests.image.open_image import say
from ZODB.Connection import Connection

#: Seconds until what a killed process had may be taken over.
LEASE = 1.0


async def main(folder: Path, image: str, journal: str, last: int) -> None:
    """Tell, erase, and die."""
    commits, finish = 0, Connection.tpc_finish
    is_erasing = False

    def count(self: Connection, transaction: Any) -> None:
        nonlocal commits
        finish(self, transaction)
        if is_erasing:
            commits += 1
            if commits == last:
                os.kill(os.getpid(), signal.SIGKILL)

    Connection.tpc_finish = count  # type: ignore[method-assign]
    async with told_mind(folder, image=image, journal=journal, lease=LEASE) as (mind, home):
        await tell(mind, home)
        is_erasing = True
        await mind.ask("erase", target=SECRET, user="tester")
        say(str(commits))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
