"""A mission uses what is remembered: within its reach, the same in every attempt, and nothing where it wants none."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.minds.scripted import kind

from batos.inference.ollama.bridge import ChatRequest
from batos.memory.known_texts import Incoming
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LAMP = "The keeper Maro winds the clockwork of the lamp every four hours."
QUESTION = "Who winds the clockwork of the lamp?"


async def remember(uvm: UVM, text: str, **about: Any) -> None:
    """Remember a text of the tester's."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    given = {"user": "tester", "scope": "default", "source": "/lamp", "title": "lamp", "trust": "external", **about}
    await uvm.document_store.remember([Incoming(media_type="text/plain", text=text, sha256=digest, **given)])


async def ask(uvm: UVM, text: str = QUESTION, **brief: Any) -> dict[str, Any]:
    """The report of a mission that is done."""
    return dict(await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **brief}))


def seen(bridge: ScriptedBridge) -> list[str]:
    """The prompts of the text calls, whole."""
    return ["\n".join(each["content"] for each in request.messages) for request in bridge.history]


async def test_a_question_is_answered_from_what_is_remembered(tmp_path: Path) -> None:
    """The part stands in the prompt, is reported as recalled, and is cited like a file's."""
    bridge = ScriptedBridge.saying(LAMP)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm, LAMP)
        told = await ask(uvm)
        assert LAMP in seen(bridge)[-1]
        (recalled,) = told["provenance"]["recalled"]
        assert (recalled["name"], recalled["start"], recalled["length"]) == ("lamp", 0, len(LAMP))
        assert [each["quote"] for each in told["provenance"]["citations"]] == [LAMP]


@pytest.mark.parametrize(("trust", "lineage"), [("user", "model"), ("tool", "tool"), ("external", "external")])
async def test_an_answer_is_trusted_no_more_than_what_was_recalled_for_it(
    tmp_path: Path, trust: str, lineage: str
) -> None:
    """What the user said leaves the class of the model; the class and the part are in the provenance."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP)) as uvm:
        await remember(uvm, LAMP, trust=trust)
        told = await ask(uvm)
        (recalled,) = told["provenance"]["recalled"]
        assert (recalled["trust"], told["trust"]["lineage"]) == (trust, lineage)
        with uvm.image.snapshot() as root:
            (name,) = root["documents"]
        assert (recalled["memory"], recalled["chunk"]) == (name, 1)


@pytest.mark.parametrize(
    ("brief", "about"),
    [
        ({"policy": {"memory": "none"}}, {}),
        ({"policy": {"memory": "work"}}, {}),
        ({}, {"scope": "work"}),
        ({}, {"user": "bob"}),
        ({"text": "What is the capital of Bolivia?"}, {}),
    ],
)
async def test_what_is_out_of_reach_is_not_shown(tmp_path: Path, brief: dict[str, Any], about: dict[str, Any]) -> None:
    """Of another user, in another scope, about something else, or where the question wants nothing of it."""
    bridge = ScriptedBridge()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm, LAMP, **about)
        told = await ask(uvm, **brief)
        assert told["provenance"]["recalled"] == []
        assert not any("clockwork of the lamp every" in each for each in seen(bridge))


async def test_a_named_scope_and_that_of_the_conversation_are_within_reach(tmp_path: Path) -> None:
    """The first only where it is asked for, the second by itself."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        await remember(uvm, LAMP, scope="work")
        assert (await ask(uvm, policy={"memory": "work"}))["provenance"]["recalled"]
        first = await ask(uvm, "How are you?", conversation="new")
        conversation = first["brief"]["conversation"]
        await remember(uvm, LAMP, scope=conversation)
        named = [each.get("name") for each in (await ask(uvm, conversation=conversation))["provenance"]["recalled"]]
        assert "lamp" in named


async def test_a_later_attempt_is_shown_the_same_parts(tmp_path: Path) -> None:
    """What came to be remembered meanwhile does not change its prompts, so that its paid calls are found again."""
    bridge = ScriptedBridge.saying(LAMP)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm, LAMP)
        first = await ask(uvm)
        await remember(uvm, f"{LAMP} Who winds the clockwork of the lamp? Anna does.", source="/other")
        calls = len(bridge.history)
        again = await ask(uvm, ancestor=first["id"])
        assert len(bridge.history) == calls
        assert again["provenance"]["recalled"] == first["provenance"]["recalled"]
        fresh = await ask(uvm)
        assert len(fresh["provenance"]["recalled"]) == 2


async def test_a_part_of_a_question_brings_what_is_remembered_for_it(tmp_path: Path) -> None:
    """The sub-query names what the question does not; its parts stand in every prompt behind those of the question."""
    oil = "Harbour masters measure the brass cans in March."

    def respond(request: ChatRequest) -> str:
        if kind(request) == "decomposition":
            assert request.schema is not None
            *others, last = request.schema["properties"]
            told = {key: f"{QUESTION} ({key})" for key in others}
            return json.dumps({**told, last: "When do harbour masters measure the brass cans of the lamp?"})
        return LAMP

    bridge = ScriptedBridge(respond)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm, LAMP)
        await remember(uvm, oil, source="/oil", title="stores")
        told = await ask(uvm, persona="BRICK", effort="cycle")
        assert [(each["document"], each["name"]) for each in told["provenance"]["recalled"]] == [
            (1, "lamp"),
            (2, "stores"),
        ]
        first, second, *_ = seen(bridge)
        assert (oil in first, LAMP in first) == (False, True)
        assert oil in second
        assert (await ask(uvm, effort="reflex"))["provenance"]["recalled"][0]["name"] == "lamp"


async def test_a_superseded_statement_is_shown_behind_its_mark(tmp_path: Path) -> None:
    """And is no ground for an answer that tells it as current; a later attempt is shown the same."""
    old, new = "The meeting of the keepers is in room 4.", "The meeting of the keepers is now in room 9."
    bridge = ScriptedBridge.saying(old)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        for at, text in (("2026-11-01T00:00:00Z", old), ("2026-11-02T00:00:00Z", new)):
            about = {"kind": "turn", "said_at": at, "conversation": "c-1", "source": "", "trust": "user"}
            await remember(uvm, text, **about)
        told = await ask(uvm, "In which room is the meeting of the keepers?")
        prompt = seen(bridge)[0]
        assert f"[superseded since 2026-11-02] {old}" in prompt
        assert new in prompt
        assert {each.get("standing") for each in told["provenance"]["recalled"]} == {
            None, "[superseded since 2026-11-02]",
        }  # fmt: skip
        assert "superseded" in {each["check"] for each in told["provenance"]["gate"]["faults"]}


async def test_a_question_about_the_past_is_shown_history(tmp_path: Path) -> None:
    """A superseded fact, behind its mark; any other question is shown the current one alone."""
    bridge = ScriptedBridge.saying("The launch was on 15 March before.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        for text in ("The launch is on 15 March.", "The launch is on 18 March."):
            about = {"kind": "fact", "key": "launch_date", "title": "launch date", "source": "", "trust": "user"}
            await remember(uvm, text, **about)
        (current,) = (await ask(uvm, "On which day is the launch?"))["provenance"]["recalled"]
        assert "standing" not in current
        told = await ask(uvm, "On which day was the launch before?")
        assert len(told["provenance"]["recalled"]) == 2
        assert "] launch date: The launch is on 15 March." in seen(bridge)[-1]
        assert "superseded" in told["provenance"]["gate"]["checked"]
        assert "superseded" not in {each["check"] for each in told["provenance"]["gate"]["faults"]}
