"""Answers in the stream: whatever made an answer, its words and its citations are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, LAMP, TRIMS, WINDS, ask

RISKS = "How does the keeper keep the lamp burning, and what could go wrong with it?"
BOTH = f"{WINDS}. {TRIMS.capitalize()}."


def streamed(mind: Mind) -> tuple[str, set[tuple[int, int]]]:
    """The text and the cited places that a listener has at the end."""
    text, places = "", set[tuple[int, int]]()
    for name, keys in mind.events:
        if name == "mission.retracted":
            text, places = "", set()
        elif name == "mission.token":
            text += keys["text"]
        elif name == "mission.citation":
            places.add((keys["document"], keys["span"][0]))
    return text, places


@pytest.mark.parametrize(
    ("question", "options", "replies"),
    [
        (RISKS, {"effort": "reflex"}, {"woven": BOTH}),
        (RISKS, {"effort": "reflex"}, {"woven": ""}),
        ("How does the keeper keep the lamp burning?", {}, {"woven": BAD, "revised": BOTH}),
        ("How does the keeper keep the lamp burning?", {}, {"woven": BOTH, "revised": BAD}),
        ("How does the keeper keep the lamp burning?", {}, {"part": ""}),
        ("How does the keeper keep the lamp burning?", {"policy": {"combine": "vote"}}, {"part": BOTH}),
        (RISKS, {}, {"changed": BOTH}),
        (RISKS, {}, {"changed": BAD}),
    ],
    ids=["reflex", "rule", "revision", "draft", "no part", "vote", "protocol", "protocol dropped"],
)
async def test_who_listens_has_the_answer_and_its_citations(
    mind: Mind, question: str, options: dict[str, Any], replies: dict[str, str]
) -> None:
    """What stands in the end is what was told and not withdrawn, whoever wrote it: a model, a rule or a protocol."""
    for name, reply in replies.items():
        setattr(mind.script, name, reply)
    shown = await ask(mind.uvm, question, **options)
    cited = {(each["document"], each["span"][0]) for each in shown["provenance"]["citations"]}
    assert cited
    assert streamed(mind) == (shown["answer"], cited)


@pytest.mark.parametrize(("files", "is_exact"), [((LAMP,), True), ((), False)], ids=["a document", "nothing"])
async def test_what_documents_say_is_no_matter_of_chance(mind: Mind, files: tuple[Any, ...], is_exact: bool) -> None:
    """The likeliest words answer beside a document; without one the persona's own temperature holds."""
    await ask(mind.uvm, RISKS, files=files, effort="reflex")
    assert (mind.bridge.history[-1].options["temperature"] == 0) == is_exact
