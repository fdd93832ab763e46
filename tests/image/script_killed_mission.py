"""A process that runs all that was left behind, and in which one mission kills it: whenever that asks its facets."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.image.missions import thinking
from tests.image.open_image import say
from tests.minds.scripted import Script, kind

from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.testing import ScriptedBridge
from batos.uvm import UVM

#: The question that no process survives, and that which is answered only where the other is not asked.
DEADLY, INNOCENT = "What ends all?", "What harms nobody?"


class DeadlyBridge(ScriptedBridge):
    """Where a deadly mission has begun its decomposition alone is answered, and its first facet kills the process."""

    def __init__(self) -> None:
        super().__init__(Script())
        #: The questions of the missions that have begun.
        self.begun: set[str] = set()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, if it may."""
        if DEADLY in self.begun:
            if kind(request) != "decomposition":
                os.kill(os.getpid(), signal.SIGKILL)
            if DEADLY not in str(request.messages):
                await asyncio.Event().wait()
        return await super().think(request, on_token, stream=stream)


def deaths(uvm: UVM, mission: str) -> int:
    """How often its process died."""
    with uvm.image.snapshot() as root:
        return int(uvm.image.find(root, mission).status.deaths)


async def main(home: Path) -> None:
    """Recover, begin all, and wait for them."""
    bridge = DeadlyBridge()
    async with thinking(home, bridge) as uvm:

        def began(event: str, keys: Mapping[str, Any]) -> None:
            """Tell which missions begin."""
            if event == "mission.status" and keys["status"] == "running":
                bridge.begun.add(uvm.readings.mission(keys["mission"])["brief"]["text"])
                say(keys["mission"])

        uvm.events.subscribe(began)
        waiting = await uvm.missions.recover()
        # What died less often goes first among those that run alone, though the quiet seconds are over before all are
        # there.
        for mission in sorted(waiting, key=lambda each: deaths(uvm, each)):
            await uvm.missions.begin(mission)
        await asyncio.gather(*(uvm.missions.wait_for_end(mission) for mission in waiting))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
