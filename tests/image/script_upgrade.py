"""A process that upgrades a home, record by record, and kills itself at one of its writes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.image.open_image import open_image, say, upgrading

from batos.image.filestorage import SoundFileStorage


async def main(home: Path, last: int, when: str) -> None:
    """Open; the write of the number `last`, of both databases together, is the last thing that happens, or does not."""
    writes = 0

    class Storage(SoundFileStorage):
        def tpc_finish(self, *given: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == last and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            done = super().tpc_finish(*given)
            if writes == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

    async with open_image(
        home,
        image_factory=lambda: Storage(str(home / "live_image.fs"), blob_dir=str(home / "blobs")),
        journal_factory=lambda: Storage(str(home / "journal.fs")),
        upgrading=upgrading(batch=1),
    ):
        say("open", writes)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
