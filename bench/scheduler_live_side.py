"""Asks a real daemon the same calls with and without our order, and counts the loads that it tells of."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

from batos.events import Events
from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.chat import ChatRequest
from batos.inference.vram.call_scheduler import SharedCard
from batos.inference.vram.placement import LOADED

CALLS = 24


async def measure_daemon(url: str, models: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return seconds and loads of calls to these models at random, sent at once: in our order, and in the daemon's."""
    async with Bridge(url) as bridge:
        digests = {row.name: row.digest for row in await bridge.list()}
        names = [random.Random(1).choice(models) for _ in range(CALLS)]
        card = SharedCard(bridge, Events(log=False), 1)

        async def ask(number: int, name: str, *, ordered: bool) -> float:
            message = {"role": "user", "content": f"Say the number {number} as a word."}
            request = ChatRequest(name, (message,), {"num_ctx": 2048, "num_predict": 24, "temperature": 0})
            if not ordered:
                return (await bridge.think(request)).load_seconds
            async with card.turn(request, digests[name], f"m-{number}", 0) as turn:
                answer = await bridge.think(request, turn.listening(None))
                turn.note_load(answer.load_seconds)
                return answer.load_seconds

        found = {}
        for order, ordered in (("direct", False), ("ours", True)):
            began = time.monotonic()
            loads = await asyncio.gather(*(ask(number, name, ordered=ordered) for number, name in enumerate(names)))
            seconds = round(time.monotonic() - began, 2)
            found[order] = {"seconds": seconds, "loads": sum(each >= LOADED for each in loads)}
        return found
