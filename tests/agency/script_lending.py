"""A server whose missions call a tool of their asker in the middle, and a program that lends one; one is killed.

server HOME POINT: it kills itself at a point of the call: `staged`, before it is sent; `answered`, before the answer is
recorded. caller HOME POINT: its function kills the server (`sent`) or its own program (`caller`) once it has acted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agency.lending import lend

from batos import Client, always
from batos.agency.callers import Callers, CallerTimes
from batos.cli.verbs.serve import open_server
from batos.client import addresses
from batos.config import Settings
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.lent_tools import CallReply, LentCallDocument
from batos.testing import ScriptedBridge
from batos.uvm import UVM, Seams

QUESTION = "Who fires at Rome?"


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Callers):
    """Callers that kill the server at a point."""

    point = ""

    async def ask(self, caller: str, call: LentCallDocument, seconds: float) -> CallReply | None:
        """Die once the call is staged and before it is sent."""
        if self.point == "staged":
            die()
        return await super().ask(caller, call, seconds)

    def answer(self, caller: str, call: str, reply: CallReply) -> bool:
        """Die once the program has answered and before anything is written."""
        if self.point == "answered":
            die()
        return super().answer(caller, call, reply)


class CallingBridge(ScriptedBridge):
    """A model whose first answer to the question waits for a call of the asker's tool."""

    uvm: UVM

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Call the tool, and write down what came."""
        (mission,) = self.uvm.image.unfolded_missions()
        result = await (await lend(self.uvm, [mission])).call("fire", {"city": "Rome"}, "babs/tools#0")
        with (self.uvm.settings.home / "said").open("a") as out:
            out.write(f"{result.failure or result.texts[0].text}\n")
        return await super().think(request, on_token, stream=stream)


async def serve(home: Path, point: str) -> None:
    """Serve until killed."""
    anywhere = "tcp://127.0.0.1:*"
    settings = Settings(home=home, user="tester", bind=anywhere, events=anywhere, install="never")
    bridge = CallingBridge()
    async with open_server(settings, Seams(bridge=bridge)) as (uvm, _):
        bridge.uvm = uvm
        callers: Any = uvm.readiness.tool_places.callers
        callers.__class__, callers.point = Deadly, point
        callers.times = CallerTimes(patience=1.0 if point == "caller" else 60.0, again=0.2)
        await asyncio.Event().wait()


def ask(home: Path, point: str) -> None:
    """Ask, and lend a function that acts on the world."""

    def fire(city: str) -> str:
        """Fire at a city."""
        with (home / "log").open("a") as log:
            log.write(f"{city}\n")
        if point == "caller":
            die()
        server = addresses.running_server(home)
        if point == "sent" and server is not None:
            os.kill(server.pid, signal.SIGKILL)
        return "fired"

    with Client(home) as client:
        mission = client.ask(QUESTION, tools=[fire], approve=always, effort="reflex")
        sys.stdout.write(f"{mission.status}\n")


if __name__ == "__main__":
    given = Path(sys.argv[2]), sys.argv[3]
    if sys.argv[1] == "server":
        asyncio.run(serve(*given))
    else:
        ask(*given)
