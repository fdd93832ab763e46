"""A process that accepts a mission with a file, prints the path of all that it syncs and then the id, and waits."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path

from tests.image.open_image import brief, open_image, say

from batos.image.filestorage import SoundFileStorage


def told(descriptor: int) -> None:
    """Sync, and say what."""
    os.fsync(descriptor)
    say(Path(f"/proc/self/fd/{descriptor}").readlink())


async def main(home: Path, size: int) -> None:
    """Accept, then wait to be killed."""
    data = (b"salt and water, " * (size // 16 + 1))[:size]
    image_file, blobs = str(home / "live_image.fs"), str(home / "blobs")
    async with open_image(home, image_factory=lambda: SoundFileStorage(image_file, blob_dir=blobs, sync=told)) as image:
        say(await image.accept(brief(), {hashlib.sha256(data).hexdigest(): data}))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
