"""A process that makes a method after an answer and says each step, to be killed on the way: `script_grow.py HOME`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.image.open_image import say
from tests.methods.generation.learning import MESSAGE, SAID, SPEAKS
from tests.methods.generation.script_learn import WRONG, Slow

from batos.events import Events
from batos.testing import author, plain_reply, scripted_uvm, wanted_selector


def tell(name: str, keys: Mapping[str, Any]) -> None:
    """Say a state, an installation and the commit, and go on when a line comes: the process is killed where it is."""
    is_committed = name == "txn.commit" and str(keys.get("what")).startswith("m-")
    if name in ("mission.state", "method.installed") or is_committed:
        say("committed" if is_committed else str(keys.get("state", "installed")))
        sys.stdin.readline()


async def main(home: Path) -> None:
    """Answer without a method, then make it; the coder's second draft is right."""
    good = author(SPEAKS, SAID)
    bridge = Slow(plain_reply)
    bridge.respond = lambda request: WRONG if wanted_selector(request) and len(bridge.history) == 2 else good(request)
    events = Events(lambda name, keys: None)
    async with scripted_uvm(home, bridge, memory=False, events=events, install="auto", method_control=0) as uvm:
        await uvm.missions.ask(MESSAGE)
        events.subscribe(tell)
        await uvm.learning.some()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
