"""A process that holds an image open until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.image.living import living, say


async def main(home: Path) -> None:
    """Say when it is open."""
    async with living(home):
        say("open")
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
