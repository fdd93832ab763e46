"""A process that makes all gold items, and is killed meanwhile: `script_items.py HOME POINT NUMBER`.

The points are those of `script_curate.py`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.autotelic.script_curate import deadly_uvm
from tests.image.open_image import say

from batos.autotelic import item_store
from batos.autotelic.heartbeat import Allowance
from batos.autotelic.item_store import ItemStore
from batos.testing import DeadlyStorage


async def main(home: Path, point: str, number: int) -> None:
    """Say that it begins, then make items."""
    async with deadly_uvm(home) as uvm:
        store = ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock)
        say("begins")
        DeadlyStorage.arm(point, number)
        await item_store.refreshing(store, None, uvm.clock).work(Allowance())
        say("ends")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
