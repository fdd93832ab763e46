"""A small life that the fork server leads when it loads this: what it learns is there in every process forked from it.

What is kept is kept by caches of pure functions: templates, decisions and schemas that are compiled, the words of the
shipped codex, the emulator's vectors of its exemplars. Each process would learn them anew, in a second or two of CPU.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import threading
from pathlib import Path

from batos.testing import emulated_uvm


async def _live(home: Path) -> None:
    """Run a genesis and a mission of each of two efforts, over an emulator."""
    async with emulated_uvm(home, memory=False) as (uvm, _):
        await uvm.readiness.genesis()
        for effort in ("reflex", "cycle"):
            done = await uvm.missions.ask({"text": "Who trims the wick?", "effort": effort})
            assert done["status"] == "done", done


with tempfile.TemporaryDirectory() as _folder:
    asyncio.run(_live(Path(_folder) / "home"))
assert threading.active_count() == 1, "a process with threads is not to be forked"
gc.collect()
# What is there stays to the end: no collection of a forked process looks through it.
gc.freeze()
