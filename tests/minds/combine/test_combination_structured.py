"""An answer by a schema: one call, asked once more where it has not the schema, and no rule changes its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batos.protocol.brief import as_file
from batos.protocol.errors import DecisionInvalid
from batos.testing import ScriptedBridge, scripted_uvm

KEEPER: dict[str, Any] = {
    "type": "object",
    "properties": {"who": {"type": "string", "description": "the keeper"}, "at": {"type": "integer"}},
    "required": ["who", "at"],
}
LOG = as_file("log.txt", b"Maro winds the lamp at 9. Ida trims the wick.")
ASKED: dict[str, Any] = {"text": "Who winds the lamp, and at what hour?", "schema": KEEPER}


async def test_the_answer_is_json_with_the_schema(tmp_path: Path) -> None:
    """One call with the likeliest words; its values are cited, and nobody is told that it is JSON."""
    bridge = ScriptedBridge(lambda request: '{"a_who": "Maro", "b_at": 9}')
    async with scripted_uvm(tmp_path, bridge) as uvm:
        done = await uvm.missions.ask(ASKED, [LOG])
    (asked,) = bridge.history
    assert asked.schema is not None
    assert asked.options["temperature"] == 0.0
    assert "`a_who`: the keeper (text)" in str(asked.messages)
    assert json.loads(done["answer"]) == {"who": "Maro", "at": 9}
    assert done["route"]["effort"] == "reflex"
    assert done["provenance"]["gate"]["ok"]
    assert done["brief"]["schema"] == KEEPER


async def test_a_value_that_the_file_has_not_is_told(tmp_path: Path) -> None:
    """The gate reads an answer by a schema as it reads every other one, and changes nothing of it."""
    bridge = ScriptedBridge(lambda request: '{"a_who": "Maro", "b_at": 1975}')
    async with scripted_uvm(tmp_path, bridge) as uvm:
        done = await uvm.missions.ask(ASKED, [LOG])
    assert json.loads(done["answer"]) == {"who": "Maro", "at": 1975}
    assert not done["provenance"]["gate"]["ok"]


async def test_a_reply_without_the_schema_is_asked_for_once_more(tmp_path: Path) -> None:
    """Otherwise sampled; the first one is counted as wasted."""
    replies = iter(['{"a_who": "Maro"}', '{"a_who": "Maro", "b_at": 9}'])
    bridge = ScriptedBridge(lambda request: next(replies))
    async with scripted_uvm(tmp_path, bridge) as uvm:
        done = await uvm.missions.ask(ASKED, [LOG])
    assert json.loads(done["answer"])["at"] == 9
    first, second = bridge.history
    assert first.options["temperature"] != second.options["temperature"]
    assert first.messages == second.messages
    assert done["cost"]["wasted"] > 0


async def test_two_replies_without_the_schema_are_no_answer(tmp_path: Path) -> None:
    """No rule writes one in its place: the mission fails, and says what was wrong with the reply."""
    async with scripted_uvm(tmp_path, ScriptedBridge(lambda request: '{"a_who": "Maro"}')) as uvm:
        with pytest.raises(DecisionInvalid, match="'at' is a required property") as caught:
            await uvm.missions.ask(ASKED, [LOG])
    assert "--model" in caught.value.remedy


@pytest.mark.parametrize("text", ["My sister moved to Hamburg.", "When is our anniversary?", "Forget the anniversary."])
async def test_no_rule_answers_where_a_schema_was_asked_for(tmp_path: Path, text: str) -> None:
    """Neither a note of a fact, nor that nothing was remembered, nor an offer to forget."""
    bridge = ScriptedBridge(lambda request: '{"a_who": "Ida", "b_at": 1}')
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await uvm.missions.ask({"text": "The anniversary of the harbour is on 4 May."})
        bridge.history.clear()
        done = await uvm.missions.ask({**ASKED, "text": text})
    assert json.loads(done["answer"]) == {"who": "Ida", "at": 1}
    assert len(bridge.history) == 1
