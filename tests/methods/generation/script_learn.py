"""A process that learns a method and says what it does, to be killed on the way: `script_learn.py HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.image.open_image import say
from tests.methods.generation.learning import MESSAGE, SAID, SPEAKS

from batos.events import Events
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.testing import ScriptedBridge, author, method_reply, plain_reply, scripted_uvm, wanted_selector

WRONG = method_reply("def wrong_(self):\n    return 1\n", SAID)


class Slow(ScriptedBridge):
    """A coder whose second reply is right; each call is said, and waits for a line before it is answered."""

    async def think(self, request: ChatRequest, *args: Any, **more: Any) -> Answer:
        """Its answer."""
        if wanted_selector(request):
            say("asked", sum(1 for each in self.history if wanted_selector(each)))
            await asyncio.to_thread(sys.stdin.readline)
        return await super().think(request, *args, **more)


async def main(home: Path) -> None:
    """Ask for one facet; what is installed is said too."""
    good = author(SPEAKS, SAID)
    bridge = Slow(plain_reply)
    bridge.respond = lambda request: WRONG if wanted_selector(request) and len(bridge.history) == 1 else good(request)
    events = Events(lambda name, keys: say(name) if name == "method.installed" else None)
    async with scripted_uvm(home, bridge, memory=False, events=events, install="now", method_control=0) as uvm:
        await uvm.missions.ask(MESSAGE)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
