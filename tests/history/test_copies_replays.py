"""Replays: a mission asked again as of its own snapshot, and what came out otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door

from batos.genesis.codex import codex as codices
from batos.image.ids import tid_text
from batos.image.past import newest_commit
from batos.protocol.brief import as_file
from batos.protocol.errors import CodexError, NotFound, Refused
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm, shipped_models

OTHER = "other:1b"


def speaker() -> ScriptedBridge:
    """A mind whose models say their own names."""

    def respond(request: Any) -> str:
        if request.schema:
            return plain_reply(request)
        return "The pier is of oak." if request.model != OTHER else "The pier is of steel. It stands."

    return ScriptedBridge(respond, (*shipped_models(), OTHER))


async def test_nothing_is_paid_where_nothing_changed(tmp_path: Path) -> None:
    """What was remembered and said meanwhile is not seen; the image is not written."""
    async with scripted_uvm(tmp_path, speaker(), memory=False) as uvm:
        ask, bridge = Door(uvm), uvm.bridge
        assert isinstance(bridge, ScriptedBridge)
        brief = {"text": "What is the pier of?", "effort": "cycle", "conversation": "new"}
        first = await ask("submit", brief=brief, follow=True)
        await ask("submit", brief={**brief, "conversation": "last"}, follow=True)
        await uvm.mission_memory.write()
        size = uvm.image.sizes()["bytes"]
        bridge.history.clear()
        again = await ask("replay", mission=first["id"])
        told = again["replay"]
        assert bridge.history == []
        assert (told["made"], told["gone"], told["answer"], again["answer"]) == ([], [], [], first["answer"])
        assert len(told["same"]) == first["cost"]["calls"] == again["cost"]["from_journal"]
        assert uvm.image.sizes()["bytes"] == size
        assert [each["id"] for each in (await ask("missions"))["missions"]][-1] == first["id"]


async def test_another_model_answers_otherwise(tmp_path: Path) -> None:
    """Its calls are made and told; one that the daemon lacks is refused."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        ask = Door(uvm)
        first = await ask("submit", brief={"text": "What is the pier of?", "effort": "reflex"}, follow=True)
        again = await ask("replay", mission="last", user="tester", model=OTHER)
        told = again["replay"]
        assert told["answer"] == ["- The pier is of oak.", "+ The pier is of steel.", "+ It stands."]
        assert (len(told["made"]), len(told["gone"]), told["models"][1]) == (1, 1, [OTHER])
        assert (await ask("show", mission=again["id"]))["answer"] == "The pier is of steel. It stands."
        lacking = await ask("replay", mission=first["id"], model="absent:1b")
        assert (lacking["status"], lacking["reason"]["code"]) == ("failed", "model_missing")
        assert "ollama pull absent:1b" in lacking["reason"]["remedy"]
        with pytest.raises(NotFound):
            await ask("replay", mission=first["id"], user="somebody")
        waits = await uvm.missions.submit({"text": "What holds?"})
        with pytest.raises(Refused, match="not ended"):
            await ask("replay", mission=waits)


async def test_another_codex_asks_otherwise(tmp_path: Path) -> None:
    """Its words are in the prompts; one with faults is refused."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        ask, bridge = Door(uvm), uvm.bridge
        assert isinstance(bridge, ScriptedBridge)
        first = await ask("submit", brief={"text": "What is the pier of?", "effort": "reflex"}, follow=True)
        with uvm.image.snapshot() as root:
            charter = root["orchestrator_obj"].charter
        words = charter.split(".")[0]
        other = {name: text.replace(words, "Answer in verse") for name, text in codices.read_shipped().items()}
        bridge.history.clear()
        again = await ask("replay", mission=first["id"], codex=other)
        assert len(again["replay"]["made"]) == len(bridge.history) == 1
        assert "Answer in verse" in str(bridge.history[0].messages)
        with uvm.image.snapshot() as root:
            assert root["orchestrator_obj"].charter == charter
        with pytest.raises(CodexError):
            await ask("replay", mission=first["id"], codex={"mind.toml": "nothing"})


def swapped(text: str, other: str) -> str:
    """A persona's part of the codex with what another one is chosen by."""
    for key in ("triggers", "exemplars"):
        block = re.compile(rf"^{key} = \[.*?^\]", re.MULTILINE | re.DOTALL)
        theirs = block.search(other)
        assert theirs is not None
        mine = block.search(text)
        assert mine is not None
        text = text.replace(mine[0], theirs[0])
    return text


async def test_another_codex_routes_anew(tmp_path: Path) -> None:
    """Whoever it would choose thinks, and only there; without another codex the route is that of then."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        ask, shipped = Door(uvm), codices.read_shipped()
        text = "How do I roll back a failed database migration without losing the rows written since?"
        first = await ask("submit", brief={"text": text, "effort": "reflex"}, follow=True)
        assert first["route"]["personas"] == ["BRICK"]
        one, two = shipped["brick.toml"], shipped["robin.toml"]
        other = {**shipped, "brick.toml": swapped(one, two), "robin.toml": swapped(two, one)}
        again = await ask("replay", mission=first["id"], codex=other)
        assert (again["route"]["personas"], again["replay"]["personas"]) == (["ROBIN"], [["BRICK"], ["ROBIN"]])
        same = await ask("replay", mission=first["id"], codex=shipped)
        assert (same["replay"]["made"], same["route"]["personas"]) == ([], ["BRICK"])


async def test_a_promoted_dream_is_replayed_as_of_the_commit_that_it_copied(tmp_path: Path) -> None:
    """The mind of then has no such mission, conversation or file; its calls are found, and that commit is named."""
    async with scripted_uvm(tmp_path, speaker(), memory=False) as uvm:
        ask = Door(uvm)
        file = as_file("lamp.txt", b"Maro winds the clockwork.", 1_000)
        await ask.dispatcher.uploads.add(file.ref.sha256, 0, "TWFybyB3aW5kcyB0aGUgY2xvY2t3b3JrLg==", "")
        brief = {"text": "What is the pier of?", "effort": "cycle", "conversation": "new"}
        copied = tid_text(newest_commit(uvm.image.db))
        dream = await ask("dream_new", brief={**brief, "attachments": [file.ref.model_dump()]})
        promoted = await ask("dream_promote", dream=dream["id"])
        assert promoted["provenance"]["read_at"] == copied
        again = await ask("replay", mission=dream["id"])
        told = again["replay"]
        assert (again["status"], again["as_of"]["tid"], again["answer"]) == ("done", copied, dream["answer"])
        assert (told["made"], told["gone"], again["cost"]["from_journal"]) == ([], [], dream["cost"]["calls"])
