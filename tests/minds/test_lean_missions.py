"""Missions of a small model: each call has its own sentences in focus, and what it was not shown is recorded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import LAMP, QUESTION, WINDS, ask, begun

from batos.cli.render.mission import notes_text
from batos.cli.render.mission_record import prompts_text
from batos.inference.ollama.bridge import ChatRequest
from batos.minds import prompt
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, ContextOverflow
from batos.protocol.mission_documents import MissionDocument
from batos.testing import instance

SEVERAL = "Who carries the oil up from the yard, and how often is the clockwork wound?"
PARTS = {"q1": "Who carries the oil up from the yard?", "q2": "How often is the clockwork wound?"}


def say(request: ChatRequest) -> str | BatosError:
    """Divide into those parts, and say the same in every other call."""
    if request.schema is None:
        return f"{WINDS}."
    if "q1" in request.schema["properties"]:
        return json.dumps(PARTS)
    return json.dumps(instance(request.schema, f"{WINDS}."))


@pytest.fixture
def small(mind: Mind) -> Mind:
    """The scripted mind, of whose models the daemon tells few parameters."""
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    mind.bridge.respond = say
    return mind


def _last(request: ChatRequest) -> str:
    """The question or the task, without the form of the reply."""
    return request.messages[-1]["content"].partition("\n\nReply with:")[0]


async def test_a_facet_is_asked_its_own_question_in_its_own_focus(small: Mind) -> None:
    """Each facet has its own line, its own sub-query last, and the sentence that bears on that and no other's."""
    shown = await ask(small.uvm, SEVERAL)
    asked = {_last(each).rpartition("Question: ")[2]: each for each in small.bridge.history[1:4]}
    found = [asked[text] for text in (SEVERAL, *PARTS.values())]
    assert len({each.messages[0]["content"] for each in found}) == 3
    _, oil, winding = map(_last, found)
    assert "Anna Lund" in oil
    assert "clockwork" in winding
    assert SEVERAL not in oil
    assert [voice["query"] for voice in shown["voices"]] == [SEVERAL, *PARTS.values()]
    assert "rules" not in shown["provenance"]


async def test_a_division_is_asked_by_example_without_documents(small: Mind) -> None:
    """The question to divide comes last, as those of the examples do, and nobody speaks; the likeliest words count."""
    await ask(small.uvm, SEVERAL)
    request = small.bridge.history[0]
    system, *examples, user = request.messages
    assert system["content"] == "Split the question into two short questions."
    assert [each["role"] for each in examples] == ["user", "assistant"] * 3
    assert user["content"] == f"Question: {SEVERAL}"
    assert request.options["temperature"] == 0


async def test_a_question_of_one_thing_is_not_divided_and_its_parts_vote(small: Mind) -> None:
    """No call divides it; parts are asked one after another until a majority is sure, and the rule is told."""
    shown = await ask(small.uvm)
    assert len(small.bridge.history) == 2
    assert {voice["query"] for voice in shown["voices"]} == {QUESTION}
    combined = shown["provenance"]["combined"]
    assert (combined["mode"], combined["majority"], combined["decomposed"]) == ("vote", True, False)
    (rule,) = shown["provenance"]["rules"]
    assert rule == {"path": "brick/decomposing#0", "decision": "division", "why": combined["undivided"]}
    assert [each["decision"] for each in small.told("mission.rule")] == ["division"]
    notes = notes_text(cast("MissionDocument", shown), voices=False)
    assert "by rule: division" in next(line for line in notes.splitlines() if line.startswith("route"))


async def test_without_a_majority_a_rule_chooses(small: Mind) -> None:
    """Three answers to one question: the model is not asked which is best, and the rule is told."""
    said = iter(("Whales sing in 1887.", f"{WINDS}.", "It is the moon."))
    small.bridge.respond = lambda request: next(said)
    shown = await ask(small.uvm, policy={"combine": "vote"})
    assert len(small.bridge.history) == 3
    assert shown["answer"] == f"{WINDS}."
    combined = shown["provenance"]["combined"]
    assert (combined["majority"], combined["candidates"], combined["decided"]) == (False, 3, "faults")
    assert [(each["path"], each["decision"]) for each in shown["provenance"]["rules"]] == [("brick/voting#0", "choice")]
    assert "by rule: choice" in notes_text(cast("MissionDocument", shown), voices=False)


@pytest.mark.parametrize(
    "parts",
    [
        {"q1": "Who built the old mill?", "q2": "How often is the clockwork wound?"},
        {"q1": "Which queen wore it?", "q2": "How often is the clockwork wound?"},
    ],
    ids=["copied from an example", "about something else"],
)
async def test_a_part_that_is_not_of_the_question_divides_nothing(small: Mind, parts: dict[str, str]) -> None:
    """After a second try the question itself is asked of each part."""
    small.bridge.respond = lambda request: json.dumps(parts) if request.schema else say(request)
    shown = await ask(small.uvm, SEVERAL)
    assert {voice["query"] for voice in shown["voices"]} == {SEVERAL}
    assert [each.schema is not None for each in small.bridge.history[:3]] == [True, True, False]


async def test_every_prompt_is_short(small: Mind) -> None:
    """No call has the charter, the rules or a clock, and each has at most 60 tokens beside text and question."""
    await ask(small.uvm)
    for request in small.bridge.history:
        text = " ".join(message["content"] for message in request.messages)
        assert "Architect" not in text
        assert "UTC" not in text
        assert len(request.messages[0]["content"].encode()) * 0.35 < 60


async def test_what_a_call_was_shown_is_recorded(small: Mind) -> None:
    """Provenance has the spans of each call and the number of the other sentences; `show --prompts` tells it."""
    filler = " ".join(f"Gull number {at} cries over the bay." for at in range(40))
    shown = await ask(small.uvm, files=(as_file("log.txt", f"{filler} {WINDS}. {filler}".encode()),), effort="reflex")
    (found,) = shown["provenance"]["focus"]
    assert found["path"] == "brick/reflex#0"
    told = _last(small.bridge.history[-1]).removeprefix("Text:\n").partition("\n\n")[0].splitlines()
    assert found["omitted"] == 81 - len(told)
    assert shown["provenance"]["forms"] == {small.bridge.history[-1].model: "lean"}
    text = prompts_text(small.uvm.readings.prompts(shown["id"]), shown["provenance"]["focus"])
    assert f"not shown: {found['omitted']} further sentences of the documents" in text


async def test_a_sentence_far_behind_in_a_long_file_is_found(small: Mind) -> None:
    """Recall is not limited by the window: the sentence of 20 KB that bears on the question is shown."""
    filler = "\n\n".join(
        f"On day {at} the keeper wrote a letter about the weather and the sea." * 3 for at in range(90)
    )
    log = as_file("log.txt", f"{filler}\n\nThe brass telescope belongs to Ole Brandt.\n\n{filler}".encode())
    await ask(small.uvm, "Who owns the brass telescope?", files=(log,), effort="reflex")
    assert "The brass telescope belongs to Ole Brandt." in _last(small.bridge.history[-1])


async def test_turns_go_before_sentences_where_a_prompt_is_too_long(small: Mind) -> None:
    """A prompt that the daemon refuses is asked again without the oldest turns, and with the same text."""
    conversation = await begun(small.uvm)
    for _ in range(3):
        await ask(small.uvm, effort="reflex", conversation=conversation)
    refused: list[ChatRequest] = []

    def respond(request: ChatRequest) -> str | BatosError:
        if not refused:
            refused.append(request)
            return ContextOverflow(prompt.size(request.messages) // 3, 4_096)
        return say(request)

    small.bridge.respond = respond
    await ask(small.uvm, effort="reflex", conversation=conversation, files=(LAMP,))
    again = small.bridge.history[-1]
    assert len(again.messages) < len(refused[0].messages)
    assert again.messages[-1] == refused[0].messages[-1]


async def test_sentences_go_where_there_is_nothing_else_to_leave_out(small: Mind) -> None:
    """The first sentences in focus are kept as far as there is room for them."""
    sizes: list[Any] = []

    def respond(request: ChatRequest) -> str | BatosError:
        sizes.append(len(re.findall(r"^.+$", _last(request), re.MULTILINE)))
        return ContextOverflow(5_000, 4_096) if len(sizes) == 1 else say(request)

    small.bridge.respond = respond
    shown = await ask(small.uvm, effort="reflex")
    assert shown["status"] == "done"
    assert sizes[1] < sizes[0]


async def test_a_council_may_have_both_forms(mind: Mind) -> None:
    """A persona with a small model gets its own form, and evidence that the others can be shown whole."""
    file = mind.uvm.settings.home / "codex" / "robin.toml"
    file.write_text(f'form = "lean"\n{file.read_text(encoding="utf-8")}', encoding="utf-8")
    mind.bridge.respond = say
    shown = await ask(mind.uvm, effort="council")
    assert shown["status"] == "done"
    forms = {
        "- Documents and earlier turns are evidence" in request.messages[0]["content"]
        for request in mind.bridge.history
    }
    assert forms == {True, False}
    assert sorted(set(shown["provenance"]["forms"].values())) == ["full", "lean"]
