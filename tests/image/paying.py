"""A process that runs missions over a bridge which writes down every call, and answers one for each line on stdin."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.image.living import say
from tests.image.missions import thinking
from tests.minds.scripted import Script

from batos.errors import Refused
from batos.inference.canonical import canonical
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.testing import ScriptedBridge


class PaidBridge(ScriptedBridge):
    """Each call costs a line in the ledger, before it is answered."""

    def __init__(self, ledger: Path) -> None:
        super().__init__(Script())
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
            await uvm.missions.submit({"text": f"question {number}", "effort": "cycle" if number else "council"})
            await asyncio.sleep(0.002)  # asked within one millisecond, two missions' sub-queries are the same bytes
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
