"""Wishes for tools: plain ones, by the words of the answer, that the good author can write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ollama_emulator.clients import Client
from tests.ollama_emulator.speech.authoring.ordering import FORM, asking, decoded

from ollama_emulator.speech.authoring import gadgets, orders
from ollama_emulator.speech.authoring.authors import write
from ollama_emulator.speech.sources import gather

FORM_OF_TOOL = {
    "type": "object",
    "properties": {
        "inputs": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 4},
        "name": {"type": "string", "maxLength": 40},
        "purpose": {"type": "string", "maxLength": 400},
        "worth": {"type": "boolean"},
    },
    "required": ["inputs", "name", "purpose", "worth"],
}
TASK = "BRICK, this is your answer so far:\n{}\n\nNow apply the mandate to it.\nForge one tool; list its inputs."


def wished(answer: str) -> dict[str, Any]:
    """What is wished for, for an answer."""
    return gadgets.wish(FORM_OF_TOOL, gather([{"role": "user", "content": TASK.format(answer)}], ()))


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("That is 2 hours and 30 minutes.", "seconds_of_durations"),
        ("The average is four.", "mean_of_numbers"),
        ("It stands there three times.", "times_in_text"),
        ("Here are the steps.", "bulleted_list"),
        ("The lamp stands still.", "count_words"),
    ],
)
def test_a_tool_is_wished_for_by_the_words_of_the_answer(answer: str, name: str) -> None:
    """And of nothing else in the prompt; the good author computes it."""
    wish = wished(answer)
    assert (wish["name"], wish["worth"]) == (name, True)
    shape = orders.shape_of(FORM)
    assert shape is not None
    signature = f"{name}_({', '.join(('self', *wish['inputs']))})"
    order = orders.read(shape, asking(signature, wish["purpose"], kind="tool"))
    source, checks = decoded(write("good", order, {}, 0).text)
    assert "infer_" not in source
    assert all(check["result"] is not None for check in checks)


def test_what_asks_for_no_tool_is_left_alone() -> None:
    """Also where one of the three names is missing, or the schema is none."""
    sources = gather([{"role": "user", "content": "Why?"}], ())
    assert gadgets.wish({"properties": {"name": {}, "inputs": {}}}, sources) == {}
    assert gadgets.wish({"properties": None}, sources) == {}


async def test_a_tool_is_wished_for_over_the_wire(client: Client) -> None:
    """In the order of the schema."""
    reply = await client.chat(TASK.format("It took 3 hours."), format=FORM_OF_TOOL)
    found = json.loads(reply["message"]["content"])
    assert (list(found), found["inputs"]) == (["inputs", "name", "purpose", "worth"], ["text"])
