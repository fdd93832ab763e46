"""Missions to which memory has nothing near: the first line says so, and only memory is never made up for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batos.events import Events
from batos.memory.known_texts import Incoming
from batos.protocol.brief import as_file
from batos.protocol.event_payloads import MISSION_RETRACTED, MISSION_TOKEN
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

NOTE = "The boiler was mended by Mr Okafor on 17 September for 186 euros."
#: Something that no word of the note is near to.
FAR = "Who painted the green bicycle?"
#: Something that has two words of the note GATE, and many others.
NEAR = "Which colour and which shape had the harbour gate in autumn, winter and spring?"
GATE = "The harbour gate is new."
ANSWER = "It was painted in 1993."


async def remember(uvm: UVM, text: str = NOTE) -> None:
    """Let a text be remembered, as the verb does."""
    await uvm.document_store.remember(
        [Incoming("tester", "default", "", text[:20], "text/plain", text, str(hash(text)), "user")]
    )


async def ask(uvm: UVM, text: str, **brief: Any) -> MissionDocument:
    """The report of a mission that is done and remembered."""
    files = brief.pop("files", ())
    told = await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **brief}, files)
    await uvm.mission_memory.write()
    return told


async def test_the_first_line_says_that_nothing_remembered_was_used(tmp_path: Path) -> None:
    """Behind it stands the model's answer; what is remembered of the exchange is the answer alone."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        await remember(uvm)
        told = await ask(uvm, FAR)
        line, _, rest = told["answer"].partition("\n\n")
        assert (line, rest) == (told["provenance"]["without_memory"], ANSWER)
        assert "remembered" in line
        (sentence,) = told["provenance"]["sentences"]
        assert told["answer"][slice(*sentence["span"])] == ANSWER
        kept = next(each for each in uvm.readings.memories(9)["memories"] if each["kind"] == "mission")
        assert [each["text"] for each in uvm.readings.memory(kept["document"])["parts"]] == [ANSWER]


async def test_the_line_is_streamed_before_the_answer(tmp_path: Path) -> None:
    """What is streamed and not withdrawn is the answer as it stands."""
    streamed: list[str] = []

    def hear(event: str, keys: Any) -> None:
        if event == MISSION_TOKEN.name:
            streamed.append(keys["text"])
        elif event == MISSION_RETRACTED.name:
            streamed.clear()

    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER), events=Events(hear, log=False)) as uvm:
        await remember(uvm)
        told = await ask(uvm, FAR)
        assert "".join(streamed) == told["answer"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Wer hat das grüne Fahrrad gestrichen?", "Gemerktes"),
        ("Qui a peint le vélo vert ?", "mémorisé"),
        ("¿Quién pintó la bicicleta verde?", "recordado"),
    ],
)
async def test_it_is_said_in_the_language_of_the_question(tmp_path: Path, text: str, word: str) -> None:
    """From one table."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        await remember(uvm)
        assert word in (await ask(uvm, text))["answer"].partition("\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        "Good morning, how are you?",
        "Write a poem about rain.",
        "Rewrite this politely: send me the money.",
        "Write a Python function that reverses a list.",
        "Plan a weekend in Copenhagen.",
        "I feel tired after this week.",
    ],
)
async def test_nothing_is_said_where_no_note_could_answer(tmp_path: Path, text: str) -> None:
    """To greetings, texts, code, plans and feelings."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        await remember(uvm)
        assert (await ask(uvm, text))["answer"] == ANSWER


async def test_nothing_is_said_of_an_empty_memory_or_beside_a_file(tmp_path: Path) -> None:
    """There is nothing that could have been used, or the file is what is asked about."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        assert (await ask(uvm, FAR))["answer"] == ANSWER
        await remember(uvm)
        told = await ask(uvm, FAR, files=[as_file("a.txt", b"It was painted in 1993 by Ann.")])
        assert told["answer"] == ANSWER
        assert (await ask(uvm, FAR, policy={"memory": "none"}))["answer"] == ANSWER


async def test_what_comes_near_is_shown_and_named_as_perhaps(tmp_path: Path) -> None:
    """To the model in its prompt, to the person in the first line."""
    bridge = ScriptedBridge.saying(ANSWER)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm, GATE)
        told = await ask(uvm, NEAR)
        line = told["answer"].partition("\n")[0]
        assert "perhaps “The harbour gate is" in line
        assert line.count("perhaps") == 1
        shown = "\n".join(each["content"] for each in bridge.history[-1].messages)
        assert GATE in shown
        assert "(perhaps)" in shown


async def test_what_is_near_has_no_line(tmp_path: Path) -> None:
    """The answer rests on it."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("Mr Okafor mended the boiler.")) as uvm:
        await remember(uvm)
        told = await ask(uvm, "Who mended the boiler?")
        assert told["answer"] == "Mr Okafor mended the boiler."
        assert "without_memory" not in told["provenance"]


@pytest.mark.parametrize("effort", ["reflex", "cycle", "council"])
async def test_only_memory_never_asks_for_what_is_not_there(tmp_path: Path, effort: str) -> None:
    """Not one call is made, whatever the effort; the answer says that there is none."""
    bridge = ScriptedBridge.saying(ANSWER)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await remember(uvm)
        told = await ask(uvm, FAR, policy={"only_memory": True}, effort=effort)
        assert told["answer"] == "Nothing that is remembered answers this."
        assert (told["cost"]["calls"], bridge.history) == (0, [])


async def test_only_memory_quotes_what_comes_near(tmp_path: Path) -> None:
    """And of an empty memory it says that nothing answers."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        only = {"only_memory": True}
        assert (await ask(uvm, NEAR, policy=only))["cost"]["calls"] == 0
        await remember(uvm, GATE)
        told = await ask(uvm, NEAR, policy=only)
        assert GATE in told["answer"]
        assert told["cost"]["calls"] == 0
        told = await ask(uvm, "Is the harbour gate new?", policy=only)
        assert told["cost"]["calls"] == 1


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("When is our wedding anniversary?", 0),
        ("How much did we pay for the violin?", 0),
        ("Wann ist unser Hochzeitstag?", 0),
        ("Combien avons-nous payé notre vélo ?", 0),
        ("What does our piano lesson cost?", 0),
        ("what did my last visit to the vet cost", 0),
        ("What does our constitution say about the cost of freedom?", 1),
        ("Who wrote Faust?", 1),
        ("When should I water my roses?", 1),
        ("How much sleep do we need?", 1),
        ("Write a letter to my landlord about when we move.", 1),
        ("My laptop freezes when I open it.", 1),
        ("Where can I buy my tickets?", 1),
    ],
)
async def test_a_fact_of_ones_own_world_is_not_made_up(tmp_path: Path, text: str, calls: int) -> None:
    """By itself only for such a question; knowledge, advice and texts are the model's."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        await remember(uvm)
        assert (await ask(uvm, text))["cost"]["calls"] == calls


async def test_in_a_conversation_the_model_is_asked(tmp_path: Path) -> None:
    """What was said a moment ago may answer."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        await remember(uvm)
        first = await ask(uvm, "Who wrote Faust?", conversation="new")
        again = {"conversation": first["brief"]["conversation"]}
        assert (await ask(uvm, "When is our wedding anniversary?", **again))["cost"]["calls"] == 1


async def test_equal_questions_are_one_memory(tmp_path: Path) -> None:
    """The newest answer is kept, in whatever letters and marks it was asked; another question has its own."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER)) as uvm:
        for text in ("Who painted it?", "who painted it", "Who painted it?", "Who sold it?"):
            told = await ask(uvm, text)
        listed = [each for each in uvm.readings.memories(9)["memories"] if each["kind"] == "mission"]
        assert sorted(each["title"] for each in listed) == ["Who painted it?", "Who sold it?"]
        assert told["id"] in {each["mission"] for each in listed}
