"""A model of five tokens a second compacts a conversation within every deadline; its time is simulated."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.conversations.written_turns import exchanges, write_turns

from batos.config import Settings
from batos.conversations import summaries
from batos.events import Events
from batos.uvm import open_uvm
from ollama_emulator.emulator import Emulator, Options

#: Tokens a second.
SLOW = 5.0


class HurriedClock:
    """A clock on which whoever sleeps wakes at once, and the time has passed; `longest` is the longest sleep."""

    def __init__(self) -> None:
        self._now = 1_795_271_520_000_000_000
        self.longest = 0.0

    def now_ns(self) -> int:
        """The time that has passed so far."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """It has passed."""
        self.longest = max(self.longest, seconds)
        self._now += int(max(0.0, seconds) * 10**9)
        await asyncio.sleep(0)


async def test_a_model_of_five_tokens_a_second_completes_it(tmp_path: Path) -> None:
    """Each piece is one bounded call; no silence is as long as a deadline; all of it fits a mission's time."""
    clock = HurriedClock()
    async with Emulator(Options(tok_s=SLOW), clock).serving() as url:
        settings = Settings(home=tmp_path / "home", user="tester", image="memory://slow", ollama_host=url)
        async with open_uvm(settings, Events(log=False)) as uvm:
            await uvm.readiness.genesis()
            clock.longest, began = 0.0, clock.now_ns()
            name = await write_turns(uvm, exchanges(60, 600))
            message = {"receiver": name, "selector": "compact_"}
            shown = await uvm.missions.ask({"text": f"Compact {name}.", "message": message})
            passed = (clock.now_ns() - began) / 10**9
            calls = uvm.journal.read([shown["id"]])
    told = shown["provenance"]["message"]["result"]
    assert (shown["status"], told["left"]) == ("done", 0)
    assert told["covered"] > 50
    assert len(told["made"]) <= len(calls) <= summaries.MOST_CALLS * len(told["made"])
    for call in calls:
        assert call.request["options"]["num_predict"] <= summaries.LONGEST
        assert call.tokens["answer"] <= call.request["options"]["num_predict"]
    assert clock.longest < min(settings.first_token_seconds, settings.load_seconds)
    said = sum(call.tokens["answer"] for call in calls) / SLOW
    assert len(calls) < said < passed < settings.mission_seconds / 2
