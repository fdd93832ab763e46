"""A process whose mission reads from a service of this machine, and that is killed at a point behind it.

HOME POINT: `read`, once the journal has the reply; `asked`, once a model is asked; `committed`, behind the commit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batos.events import Events
from batos.inference.ollama.bridge import ChatRequest
from batos.testing import ScriptedBridge, scripted_uvm

QUESTION = 'Look up what a crossing costs to the island "Skarv".'
ANSWER = "It costs 29.0."
#: The event behind which a process dies, by point.
BEHIND = {"read": "mission.outside", "committed": "txn.commit"}


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def said(request: ChatRequest) -> str:
    """The argument of the tool where a model is asked for it, else the answer."""
    return ANSWER if request.schema is None else '{"island": "Skarv"}'


async def run(home: Path, point: str) -> None:
    """Ask, and die at a point."""

    heard: list[str] = []

    def hear(event: str, _keys: Mapping[str, Any]) -> None:
        heard.append(event)
        if event == BEHIND.get(point) and "mission.outside" in heard:
            die()

    def answer(request: ChatRequest) -> str:
        if point == "asked" and request.schema is None:
            die()
        return said(request)

    events = Events(hear, log=False)
    async with scripted_uvm(home, ScriptedBridge(answer), events=events, memory=False, install="now") as uvm:
        await uvm.missions.ask({"text": QUESTION, "effort": "reflex"})


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
