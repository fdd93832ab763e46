"""A node of an image on a server that is killed in the middle of a thought, once a first call is paid for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.image.lease_clock import LEASE
from tests.image.open_image import say
from tests.minds.scripted import Script, kind

from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.testing import ScriptedBridge, scripted_uvm


class DyingBridge(ScriptedBridge):
    """Answers the decomposition, and ends the process at the call that follows."""

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, if it may."""
        if kind(request) != "decomposition":
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().think(request, on_token, stream=stream)


async def main(home: Path, image: str, journal: str) -> None:
    """Ask one question, saying its id."""
    bridge = DyingBridge(Script())
    async with scripted_uvm(home, bridge, memory=False, image=image, journal=journal, lease=LEASE) as uvm:
        uvm.events.subscribe(lambda event, keys: say(keys["mission"]) if event == "mission.accepted" else None)
        await uvm.missions.ask({"text": "What is lost with a node?", "effort": "cycle"})


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
