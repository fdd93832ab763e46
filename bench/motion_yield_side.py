"""Measures how soon a person's question comes before one of a trial."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from batos.autotelic import trial_nights
from batos.image.roots import Root
from batos.memory.known_texts import Incoming
from batos.records import gold_items
from batos.records.gold_items import GoldItem
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm

NOTE: Final = "The lamp is amber."
PERSONS: Final = "Who winds the lamp tonight?"


class SlowVoice(ScriptedBridge):
    """A model that takes seconds for each answer, one after another, as a small one on a processor does."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.turn = seconds, asyncio.Lock()
        self.begun: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def think(self, request: Any, *args: Any, **named: Any) -> Any:
        """Answer when it is its turn."""
        async with self.turn:
            self.begun["person" if PERSONS in request.messages[-1]["content"] else "trial"].set()
            await asyncio.sleep(self.seconds)
            return await super().think(request, *args, **named)


async def measure_yield(rounds: int, seconds: float) -> float:
    """Return the longest time from a person's question to its first call while a question of a trial is answered."""
    longest, voice = 0.0, SlowVoice(seconds)
    with tempfile.TemporaryDirectory() as home:
        async with scripted_uvm(Path(home), voice) as uvm:
            Dispatcher(uvm, Uploads(Path(home) / "uploads", 10_000), works=False)  # it adds the duty of trials
            digest = sha256(NOTE.encode()).hexdigest()
            note = Incoming("tester", "default", "/notes/lamp", "lamp", "text/plain", NOTE, digest, "external")
            await uvm.document_store.remember([note])
            await uvm.image.shared.apply(put_questions)
            for _ in range(rounds):
                voice.begun.clear()
                beating = asyncio.ensure_future(uvm.heartbeat.beat())
                await voice.begun["trial"].wait()
                began = time.monotonic()
                asking = asyncio.ensure_future(uvm.missions.ask({"text": PERSONS, "effort": "reflex"}))
                await voice.begun["person"].wait()
                longest = max(longest, time.monotonic() - began)
                await asyncio.gather(beating, asking)
    return round(longest, 3)


def put_questions(root: Root) -> None:
    """Put enough questions of both uses under the one memory."""
    source = next(iter(root["documents"]))
    items = [
        GoldItem(f"{use}-{number}", "A", f"Which colour has lamp {number}?", ("amber",), source, use, "tester", "")
        for use in trial_nights.USES for number in range(trial_nights.FRESH)
    ]  # fmt: skip
    gold_items.put_items(root, source, items)
