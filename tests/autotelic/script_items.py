"""A process that makes all gold items, and is killed meanwhile: `script_items.py HOME POINT NUMBER`.

The points are those of `script_curate.py`.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import structlog
from tests.autotelic.script_curate import Deadly
from tests.image.open_image import say

from batos.autotelic import item_store
from batos.autotelic.heartbeat import Allowance
from batos.autotelic.item_store import ItemStore
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams


async def main(home: Path, point: str, number: int) -> None:
    """Say that it begins, then make items."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for what is said

    def storage() -> Deadly:
        return Deadly(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))

    seams = Seams(opening=lambda given: replace(given, image_factory=storage))
    async with scripted_uvm(home, ScriptedBridge(), memory=False, user="ann", seams=seams) as uvm:
        store = ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock)
        say("begins")
        Deadly.armed, Deadly.left = point, number
        await item_store.refreshing(store, None, uvm.clock).work(Allowance())
        say("ends")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
