"""The scripted bridge and the UVM over it: fakes that keep to what the real ones promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from batos.genesis.codex import codex as codices
from batos.image import roots
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.schema import Decision
from batos.methods.generation.dialogue import HEAD
from batos.methods.generation.method_checks import REPLY, parse
from batos.minds.calls import decisions
from batos.protocol.errors import BatosError, StreamCut
from batos.testing import (
    ScriptedBridge,
    author,
    emulated_uvm,
    instance,
    plain_reply,
    scripted_uvm,
    shipped_models,
    wanted_selector,
)

DECISIONS: tuple[Decision[Any], ...] = (
    decisions.choice(3),
    *(decisions.decomposition(parts) for parts in range(1, decisions.MOST_PARTS + 1)),
)


def request(text: str = "Hello?") -> ChatRequest:
    """A plain request."""
    return ChatRequest("m", ({"role": "user", "content": text},), {"num_ctx": 4096})


@given(text=st.text(min_size=1, max_size=3_000), which=st.sampled_from(DECISIONS))
def test_an_instance_is_a_valid_decision(text: str, which: Decision[BaseModel]) -> None:
    """Whatever its strings say, it is parsed back; that holds in the mode with reasoning too."""
    for decision in (which, which.in_mode("reason_field")):
        decision.parse(json.dumps(instance(decision.format, text)))


async def test_a_bridge_remembers_what_it_was_asked() -> None:
    """Every request in order, also one that is answered by an error."""
    replies: Iterator[str | BatosError] = iter(["one", StreamCut("cut"), "two"])
    bridge = ScriptedBridge(lambda asked: next(replies))
    pieces: list[str] = []
    assert (await bridge.think(request("a"), pieces.append)).text == "one"
    with pytest.raises(StreamCut):
        await bridge.think(request("b"))
    assert (await bridge.think(request("c"), stream=False)).text == "two"
    assert [each.messages[0]["content"] for each in bridge.history] == ["a", "b", "c"]
    assert "".join(pieces) == "one"


async def test_an_answer_counts_tokens_and_ends() -> None:
    """At least one token each, so that ratios are learnt, and the reason `stop`."""
    answer = await ScriptedBridge().think(request(""))
    assert (answer.prompt_tokens, answer.done_reason) == (1, "stop")
    assert answer.answer_tokens >= 1
    assert plain_reply(request()) == answer.text


async def test_a_bridge_has_the_shipped_models_and_what_is_made() -> None:
    """What is pulled or created is listed afterwards, each name with a digest of its own."""
    bridge = ScriptedBridge()
    assert [row.name for row in await bridge.list()] == list(shipped_models())
    async for _ in bridge.pull("another:1b"):
        pass
    async for _ in bridge.create("made:1", from_="another:1b"):
        pass
    rows = await bridge.list()
    assert [row.name for row in rows][2:] == ["another:1b", "made:1"]
    assert len({row.digest for row in rows}) == 4


async def test_a_scripted_uvm_answers_without_being_told_how(tmp_path: Path) -> None:
    """Genesis is done, and the plainest replies are enough for a mission from accept to answer."""
    async with scripted_uvm(tmp_path) as uvm:
        shown = await uvm.missions.ask({"text": "Is anyone there, and if so, who would that be?"})
    assert shown["status"] == "done"
    assert shown["answer"] == "A scripted sentence."


async def test_a_scripted_uvm_in_a_home_is_found_again(tmp_path: Path) -> None:
    """With `memory=False` the image is in files, and its missions are there in the next one."""
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        shown = await uvm.missions.ask({"text": "Hello?"})
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        assert uvm.readings.mission(shown["id"]) == shown
    async with scripted_uvm(tmp_path) as uvm:
        assert uvm.readings.newest() == []


async def test_a_mind_in_memory_is_a_copy_of_a_grown_one(tmp_path: Path) -> None:
    """A genesis finds nothing to do there, and no mind sees what another writes."""
    async with scripted_uvm(tmp_path / "one") as one, scripted_uvm(tmp_path / "other") as other:
        report = await one.readiness.genesis()
        assert (report.plan.steps, report.changes, report.faults) == ((), (), ())
        asked = await one.missions.ask({"text": "How do tides work?"})
        with one.image.snapshot() as mine, other.image.snapshot() as theirs:
            assert (list(mine[roots.MISSIONS]), list(theirs[roots.MISSIONS])) == ([asked["id"]], [])
        assert not other.journal.read([asked["id"]])
        assert one.journal.read([asked["id"]])
    async with scripted_uvm(tmp_path / "third") as third:
        with third.image.snapshot() as root:
            assert not root[roots.MISSIONS]


async def test_a_home_with_a_codex_of_its_own_has_a_genesis_of_its_own(tmp_path: Path) -> None:
    """The copies are of the shipped codex alone."""
    codices.install(tmp_path / "codex")
    mind = tmp_path / "codex" / codices.MIND
    mind.write_text(mind.read_text("utf-8").replace('charter = """', 'charter = """Be brief.', 1), "utf-8")
    async with scripted_uvm(tmp_path) as uvm:
        assert (await uvm.readiness.ready()).baseline.codex.charter.startswith("Be brief.")
        assert not (await uvm.readiness.genesis()).plan.steps


async def test_a_uvm_over_an_emulator_thinks(tmp_path: Path) -> None:
    """Genesis pulls and makes what is missing, a mission is answered, and the emulator knows what it was asked."""
    async with emulated_uvm(tmp_path) as (uvm, emulator):
        await uvm.readiness.genesis()
        before = len(emulator.requests)
        mission = await uvm.missions.ask({"text": "How does a lock gate close?", "effort": "reflex"})
        assert mission["status"] == "done"
        assert "not a model" in mission["answer"]
        assert (
            [entry["path"] for entry in list(emulator.requests)[before:]].count("/api/chat")
            == mission["cost"]["calls"]
            == 1
        )


async def test_an_emulator_in_the_process_takes_faults(tmp_path: Path) -> None:
    """A fault strikes the next call, and the mission's error says what the daemon said."""
    async with emulated_uvm(tmp_path) as (uvm, emulator):
        await uvm.readiness.genesis()
        emulator.faults.add({"match": {"path": "/api/chat"}, "do": "status", "error": "the card fell out"})
        with pytest.raises(BatosError, match="the card fell out"):
            await uvm.missions.ask({"text": "How does a lock gate close?", "effort": "reflex"})


def test_an_author_writes_for_coders_alone() -> None:
    """Whoever is asked for a method answers with it, under the selector that is wanted; any other request as before."""
    respond = author("def SELECTOR(self):\n    return 1\n", [{"result": 1}, {"result": None}])
    lines = "Owner:\nYou are BRICK.\n\nReceiver: x\nSelector: tick_\nSignature: tick_(self)"
    asks = ({"role": "system", "content": f"{HEAD}\n\nand so on"}, {"role": "user", "content": lines})
    coding = ChatRequest("coder", asks, {}, schema=REPLY.format)
    reply = REPLY.parse(str(respond(coding)))
    assert wanted_selector(coding) == "tick_"
    assert reply.source == "def tick_(self):\n    return 1\n"
    checks, faults = parse(reply.checks)
    assert ([each.result for each in checks], faults) == ([1, None], [])
    other = ChatRequest("model", ({"role": "user", "content": "Selector: tick_"},), {})
    assert (wanted_selector(other), respond(other)) == ("", plain_reply(other))
