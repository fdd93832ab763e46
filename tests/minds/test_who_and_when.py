"""A recalled text has its speaker and its day in the prompt, and a question has today's where that matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.minds.test_context_building_remembered import ask, remember, seen

from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

SWEEP = "The chimney sweep comes tomorrow at 9."


async def said(uvm: UVM, text: str = SWEEP, **about: Any) -> None:
    """Remember words of a chat of long ago."""
    chat = {"kind": "turn", "said_at": "2024-06-01T08:00:00.000Z", "speaker": "Anna", "source": "/chat#1"}
    await remember(uvm, text, **{**chat, **about})


@pytest.mark.parametrize("lean", [False, True], ids=["full", "lean"])
async def test_an_older_text_has_its_day_and_the_question_has_today(tmp_path: Path, lean: bool) -> None:
    """Last in the prompt, and the day alone; an answer that repeats the text's tomorrow has a fault."""
    bridge = ScriptedBridge.saying(SWEEP)
    async with scripted_uvm(tmp_path, bridge, lean_window=2**30 if lean else 0) as uvm:
        await said(uvm)
        told = await ask(uvm, "When does the chimney sweep come?")
    prompt = next(each for each in seen(bridge) if SWEEP in each)
    assert "Anna" in prompt
    assert "2024-06-01" in prompt
    last = bridge.history[-1 if told["cost"]["calls"] == 1 else -told["cost"]["calls"]].messages[-1]["content"]
    day = told["accepted_at"][:10]
    assert ("Question: " in last) is lean
    assert last.splitlines()[-1].startswith("Today is ")
    assert last.endswith(f", {day}.")
    (fault,) = told["provenance"]["gate"]["faults"]
    assert (fault["check"], "2024-06-01" in fault["what"]) == ("relative_days", True)


async def test_a_text_that_counts_no_days_needs_no_clock(tmp_path: Path) -> None:
    """Its day and its speaker stand beside it all the same."""
    bridge = ScriptedBridge.saying("Oskar sweeps the chimney.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await said(uvm, "Oskar sweeps the chimney.")
        told = await ask(uvm, "Who sweeps the chimney?")
    assert told["provenance"]["gate"]["faults"] == []
    prompt = seen(bridge)[-1]
    assert "Today is" not in prompt
    assert "Anna" in prompt
    assert "2024-06-01" in prompt
