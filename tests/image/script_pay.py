"""A process that runs missions over a bridge which writes down every call, and answers one for each line on stdin."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.image.missions import thinking
from tests.image.open_image import say
from tests.minds.scripted import QUESTION, Script, kind

from batos.inference.canonical import canonical
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import BatosError, Refused
from batos.testing import ScriptedBridge

#: The text of a mission below, or of a part that was made of it.
_ASKED = re.compile(r"Who asks question \d+\?(?: \(q\d\))*")


class Divider(Script):
    """Makes each sub-query of its own question, so that no two missions' calls are the same bytes."""

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """The reply to a request."""
        reply = super().__call__(request)
        if kind(request) != "decomposition" or not isinstance(reply, str):
            return reply
        return reply.replace(QUESTION, _ASKED.findall(request.messages[-1]["content"])[-1])


class PaidBridge(ScriptedBridge):
    """Each call costs a line in the ledger, before it is answered."""

    def __init__(self, ledger: Path) -> None:
        super().__init__(Divider())
        self.ledger = ledger
        self.reading = asyncio.Lock()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """The answer comes when the one who started this process lets it."""
        with self.ledger.open("a") as file:
            file.write(json.dumps(canonical(list(request.messages)).decode()) + "\n")
        say("called")
        async with self.reading:
            await asyncio.to_thread(sys.stdin.readline)
        return await super().think(request, on_token, stream=stream)


def kept(event: str, keys: Mapping[str, Any]) -> None:
    """Tell of an answer that is in the journal, and was not there before."""
    if event == "inference.end" and not keys["from_journal"]:
        say("kept")


async def main(home: Path, ledger: Path, missions: int) -> None:
    """Accept what is missing, the first a council and the others cycles, then run all that waits, three at a time."""
    async with thinking(home, PaidBridge(ledger)) as uvm:
        uvm.events.subscribe(kept)
        await uvm.missions.recover()
        for number in range(len(uvm.readings.newest(99)), missions):
            effort = "cycle" if number else "council"
            await uvm.missions.submit({"text": f"Who asks question {number}?", "effort": effort})
        slots = asyncio.Semaphore(3)

        async def run(mission: str) -> Any:
            async with slots:
                return await uvm.missions.run(mission)

        ended = await asyncio.gather(
            *(run(mission) for mission in uvm.image.unfolded_missions()), return_exceptions=True
        )
        assert not [each for each in ended if isinstance(each, BaseException) and not isinstance(each, Refused)]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
