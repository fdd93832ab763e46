"""A process that is killed while it begins what is due at a moment: `script_schedule.py HOME POINT NUMBER MOMENT`.

The points are those of `tests/autotelic/script_curate.py`.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from pathlib import Path

from tests.autotelic.script_curate import deadly_uvm
from tests.image.open_image import say

from batos.testing import DeadlyStorage


async def main(home: Path, point: str, number: int, now: datetime) -> None:
    """Say that it begins, then begin what is due, and wait for the answers."""
    async with deadly_uvm(home, lambda: now) as uvm:
        say("begins")
        DeadlyStorage.arm(point, number)
        await uvm.schedules._work()
        await asyncio.gather(*map(uvm.missions.wait_for_end, tuple(uvm.schedules._own)))
        say("ends")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), datetime.fromisoformat(sys.argv[4])))
