"""A process that holds an image open until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.fork_server import log_to_stderr
from tests.image.open_image import open_image, say


async def main(home: Path) -> None:
    """Say when it is open."""
    async with open_image(home):
        say("open")
        await asyncio.Event().wait()


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(Path(sys.argv[1])))
