"""What a model only thinks stands in the journal, and nowhere else: the daemon sends it amid the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batos.cli.render.mission_record import prompts_text
from batos.events import Events
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.testing import emulated_uvm

QUESTION, SAID = "How many sheep has the farm at Orrin?", "The farm at Orrin has 41 sheep."
REPLIES = {
    "tags": "<think>\nPerhaps 999 sheep.\n</think>\n\n{}",
    "no first tag": "Perhaps 999 sheep.\n</think>\n\n{}",
    "channels": "<|channel|>analysis<|message|>Perhaps 999 sheep.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>{}",
}


@pytest.mark.parametrize("effort", ["reflex", "cycle", "council"])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
async def test_thoughts_are_in_the_journal_alone(tmp_path: Path, reply: str, effort: str) -> None:
    """Neither answer, stream, part, fault, turn nor memory has them; every call shows them apart."""
    heard: list[tuple[str, Mapping[str, Any]]] = []
    events = Events(lambda event, keys: heard.append((event, keys)), log=False)
    async with emulated_uvm(tmp_path / "home", events=events) as (uvm, emulator):
        emulator.faults.add({"match": {"path": "/api/chat", "every": 1}, "do": "text", "text": reply.format(SAID)})
        await uvm.readiness.genesis()
        brief = {"text": QUESTION, "effort": effort, "conversation": "new"}
        mission = await uvm.missions.ask(brief)
        await uvm.missions.ask(
            {"text": "And goats?", "effort": "reflex", "conversation": mission["brief"]["conversation"]}
        )
        calls = uvm.readings.prompts(mission["id"])
        await uvm.mission_memory.write()
        with uvm.image.snapshot() as root:
            found = uvm.readings.recollection.recall(root, RecallQuery("999 sheep"), MemoryReach("tester"), 9)
    assert mission["answer"] == SAID
    assert mission["provenance"]["gate"]["faults"] == []
    # What no mark told apart in the first answer of a model was withdrawn, and is kept as such.
    withdrawn = mission["provenance"].pop("withdrawn", [])
    assert [each["reason"] for each in withdrawn] == ["the model was thinking, and no mark said so"] * len(withdrawn)
    assert len(withdrawn) == (effort == "reflex" and reply == REPLIES["no first tag"])
    told = json.dumps([{**mission, "states": []}, [keys for event, keys in heard if event == "mission.done"]])
    assert "999 sheep" not in told
    assert _stands(heard, mission["id"]) == SAID
    assert found["recalled"]
    assert not any("999 sheep" in each["text"] for each in found["recalled"])
    asked = [json.dumps(each["body"]) for each in emulator.requests if each["path"] == "/api/chat"]
    assert not any("999 sheep" in each for each in asked)
    shown = prompts_text(calls)
    assert shown.count("Perhaps 999 sheep.") == shown.count("--- thoughts") > 0


def _stands(heard: list[tuple[str, Mapping[str, Any]]], mission: str) -> str:
    """Return what a listener has in the end of what was streamed."""
    text = ""
    for event, keys in heard:
        if keys.get("mission") == mission and event in {"mission.token", "mission.retracted"}:
            text = text + keys["text"] if event == "mission.token" else ""
    return text
