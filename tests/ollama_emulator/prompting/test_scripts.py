"""Prompts that the runner writes by the template of the weights, and answers that it goes on with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.prompting.scripts import Script
from ollama_emulator.tokenizers.vocabulary import TokenEstimate

_TURNS = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }} | {% endfor %}"
SCRIPT = Script(_TURNS + "{% if add_generation_prompt %}[assistant] {% endif %}", {}, TokenEstimate(), "<s>", "</s>")
USER = {"role": "user", "content": "x"}


def assistant(content: str, **more: Any) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": content, **more}


def refused(*messages: dict[str, Any]) -> dict[str, Any]:
    """The runner's own error for messages, which have to be refused."""
    with pytest.raises(ApiError) as caught:
        SCRIPT.write(messages)
    found: dict[str, Any] = json.loads(caught.value.text)["error"]
    assert found["code"] == caught.value.status
    return found


def test_an_answer_is_opened_behind_the_last_question() -> None:
    """By what the template adds where it is asked for."""
    assert SCRIPT.write([USER, assistant("y"), USER]) == "[user] x | [assistant] y | [user] x | [assistant] "


def test_the_last_words_of_the_model_are_gone_on_with() -> None:
    """They are opened and not closed; without words nothing is opened either."""
    assert SCRIPT.write([USER, assistant("The answer")]) == "[user] x | [assistant] The answer"
    assert SCRIPT.write([assistant("So")]) == "[assistant] So"
    assert SCRIPT.write([USER, assistant("")]) == "[user] x | "


def test_what_cannot_be_gone_on_with_is_refused() -> None:
    """Two answers at the end, and a call of a tool."""
    twice = refused(USER, assistant("a"), assistant("b"))
    assert twice["message"] == "Cannot have 2 or more assistant messages at the end of the list."
    called = refused(USER, assistant("", tool_calls=[{"function": {"name": "look"}}]))
    assert called["message"] == "Cannot continue an assistant message that contains tool calls."
    assert {twice["code"], called["code"]} == {400}


def test_an_image_is_an_error_of_the_runner() -> None:
    """It is found when the messages are read, and is a 500."""
    found = refused({**USER, "images": [b"hi"]})
    assert (found["code"], found["type"]) == (500, "server_error")
    assert found["message"].startswith("image input is not supported")


def test_whoever_develops_is_the_system() -> None:
    """As the runner has it for nearly all templates."""
    assert SCRIPT.write([{"role": "developer", "content": "d"}]) == "[system] d | [assistant] "


def test_a_template_that_refuses_is_told_with_its_words() -> None:
    """400, for the runner cannot make out how it would answer."""
    script = Script("{{ raise_exception('only users may speak') }}", {}, TokenEstimate(), "", "")
    with pytest.raises(ApiError) as caught:
        script.write([USER])
    found = json.loads(caught.value.text)["error"]
    assert found["message"].startswith("Unable to generate parser for this template.")
    assert found["message"].endswith("only users may speak")
    assert found["code"] == 400
