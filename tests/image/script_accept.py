"""A process that accepts missions, many at once, and prints each id when accept has returned."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.image.open_image import brief, open_image, say

AT_ONCE = 25


async def main(home: Path, missions: int) -> None:
    """Accept so many."""
    numbers = iter(range(missions))
    async with open_image(home) as image:

        async def accept() -> None:
            for number in numbers:
                say(await image.accept(brief(f"question {number}")), number)

        await asyncio.gather(*(accept() for _ in range(AT_ONCE)))
        say("commits", image.writer.commits)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
