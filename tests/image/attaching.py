"""A process that accepts a mission with a file, prints the path of all that it syncs and then the id, and waits."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import os
import sys
from pathlib import Path

from tests.image.living import brief, living, say

_fsync = os.fsync


def told(descriptor: int) -> None:
    """Sync, and say what."""
    _fsync(descriptor)
    say(Path(f"/proc/self/fd/{descriptor}").readlink())


async def main(home: Path, size: int) -> None:
    """Accept, then wait to be killed."""
    data = (b"salt and water, " * (size // 16 + 1))[:size]
    async with living(home) as image:
        for module in (os, importlib.import_module("ZODB.FileStorage.FileStorage")):
            vars(module)["fsync"] = told
        say(await image.accept(brief(), {hashlib.sha256(data).hexdigest(): data}))
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
