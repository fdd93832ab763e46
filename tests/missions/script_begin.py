"""A process that asks one question and kills itself `before` or `after` its acceptance is on the disk."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.image.missions import thinking


async def main(home: Path, moment: str) -> None:
    """Ask, and die while the acceptance waits for its commit, or once it is durable and nothing else has happened."""
    async with thinking(home) as uvm:

        def on_event(event: str, keys: Mapping[str, Any]) -> None:
            if event == "mission.accepted":
                os.kill(os.getpid(), signal.SIGKILL)

        if moment == "after":
            uvm.events.subscribe(on_event)
        else:
            uvm.image.thread.submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        await uvm.missions.ask({"text": "Why?", "effort": "reflex"})


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
