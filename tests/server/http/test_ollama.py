"""Ollama's wire at the door: what its command line and its clients send, by their recorded forms."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.server.http.conftest import SCHEMA, OpenDoor, lines

ASKED = [{"role": "user", "content": "How do tides work?"}]
COUNTS = {"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"}


def post(door: OpenDoor, path: str, **body: Any) -> Any:
    with door.client() as client:
        return client.post(path, json=body)


def test_a_chat_streams_lines_unless_told_not_to(door: OpenDoor) -> None:
    """No blank line; the last has `done`, the reason and six counters; whole replies have all in one."""
    streamed = lines(post(door, "/api/chat", model="batos/robin:reflex", messages=ASKED))
    *words, last = streamed
    assert all(each["done"] is False and each["message"]["role"] == "assistant" for each in words)
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert last.keys() >= COUNTS
    assert all(isinstance(last[each], int) for each in COUNTS)
    said = "".join(each["message"]["content"] for each in streamed)
    assert said == door.mission(last["batos"]["mission"])["answer"]
    assert not any("thinking" in each["message"] for each in streamed)
    whole = post(door, "/api/chat", model="robin", messages=ASKED, stream=False).json()
    assert whole["message"]["content"] == door.mission(whole["batos"]["mission"])["answer"]
    thought = lines(post(door, "/api/chat", model="robin:reflex", messages=ASKED, think=True))
    assert any(each["message"].get("thinking") for each in thought)


def test_generate_is_one_question(door: OpenDoor) -> None:
    """`response` in place of a message, no conversation; empty fields as the command line sends them."""
    body = {"suffix": "", "system": "", "template": "", "options": {}}
    told = lines(post(door, "/api/generate", model="robin:reflex", prompt="What is a tide?", **body))
    mission = door.mission(told[-1]["batos"]["mission"])
    assert "".join(each["response"] for each in told) == mission["answer"]
    assert "conversation" not in mission["brief"]
    assert all("context" not in each for each in told)


def test_options_and_formats_reach_the_brief(door: OpenDoor) -> None:
    """Those that a brief has; the others are named; a schema is honoured, no limit of tokens is none."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    options = {"temperature": 0.5, "top_p": 0.5, "seed": 3, "num_predict": -1, "num_ctx": 2048}
    reply = post(door, "/api/chat", model="batos", messages=ASKED, stream=False, options=options, format=schema)
    assert reply.headers["x-batos-ignored"] == "options.num_ctx"
    brief = door.mission(reply.json()["batos"]["mission"])["brief"]
    asked = {name: brief.get(name) for name in ("temperature", "top_p", "seed", "schema", "max_tokens")}
    assert asked == {"temperature": 0.5, "top_p": 0.5, "seed": 3, "schema": schema, "max_tokens": None}
    assert '"a"' in reply.json()["message"]["content"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {"messages": ASKED, "format": "yaml"}),
        ("/api/chat", {"messages": ASKED, "options": []}),
        ("/api/chat", {"messages": ASKED, "options": {"seed": "one"}}),
        ("/api/chat", {"messages": [{"role": "user", "content": "hi", "images": ["aGk="]}]}),
        ("/api/generate", {"prompt": "x", "suffix": "y"}),
        ("/api/generate", {"prompt": "x", "raw": True}),
        ("/api/generate", {"prompt": "x", "images": ["aGk="]}),
        ("/api/embed", {"input": 3}),
    ],
)
def test_what_is_not_done_is_refused_in_words(door: OpenDoor, path: str, body: dict[str, Any]) -> None:
    """Status 400 and a text as the error, which is all that these clients read."""
    reply = post(door, path, model="batos", **body)
    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert isinstance(reply.json()["error"], str)


def test_lists_and_cards_have_what_clients_read(door: OpenDoor) -> None:
    """Names with tags that no real model has, digests, windows, dates; a card by `model` or by `name`."""
    with door.client() as client:
        version = client.get("/api/version")
        assert version.json() == {"version": "0.33.0"}
        assert version.headers["x-batos-version"]
        tags = client.get("/api/tags").json()["models"]
        running = client.get("/api/ps").json()["models"]
    assert len({each["digest"] for each in tags}) == len(tags)
    assert all(len(each["digest"]) == 64 and each["name"] == each["model"] and ":" in each["name"] for each in tags)
    assert {"batos:latest", "batos/robin:latest", "batos/robin:cycle"} <= {each["name"] for each in tags}
    assert all(datetime.fromisoformat(each["expires_at"]).tzinfo and each["context_length"] > 0 for each in running)
    card = post(door, "/api/show", model="", name="batos/robin").json()
    assert card == post(door, "/api/show", model="robin:latest").json()
    assert card["model_info"][f"{card['model_info']['general.architecture']}.context_length"] > 0
    assert card["parameters"].startswith("num_ctx")
    assert "completion" in card["capabilities"]
    assert card["capabilities"] == ["completion", "thinking", "tools"]
    assert all(card["details"].values())
    unknown = post(door, "/api/show", model="nope")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "model 'nope' not found"})


def test_models_are_neither_loaded_nor_changed(door: OpenDoor) -> None:
    """A load and an unload are answered at once; a pull of what is here is done; changes are refused."""
    loaded = post(door, "/api/generate", model="robin", prompt="").json()
    assert (loaded["done"], loaded["done_reason"]) == (True, "load")
    assert post(door, "/api/chat", model="robin", messages=[]).json()["done_reason"] == "load"
    assert post(door, "/api/generate", model="robin", prompt="", keep_alive="0s").json()["done_reason"] == "unload"
    assert post(door, "/api/pull", name="robin").json() == {"status": "success"}
    gone = post(door, "/api/pull", name="nope")
    assert gone.status_code == 404
    assert gone.json()["error"].startswith("BAT OS has no model 'nope'")
    assert [post(door, f"/api/{each}", model="x").status_code for each in ("create", "copy", "push")] == [403] * 3


def test_vectors_in_the_new_form_and_the_old(door: OpenDoor) -> None:
    """A vector for each text, or for one."""
    new = post(door, "/api/embed", model="x", input=["a tide", "a cave"]).json()["embeddings"]
    old = post(door, "/api/embeddings", model="x", prompt="a tide").json()["embedding"]
    assert len(new) == 2
    assert new[0] == pytest.approx(old)


def test_an_error_within_a_stream_is_a_line(door: OpenDoor) -> None:
    """What fails after the first line ends the stream with the error in words."""
    with door.saying("This is no JSON."):
        told = lines(post(door, "/api/chat", model="robin:reflex", messages=ASKED, format=SCHEMA))
    assert isinstance(told[-1]["error"], str)
    assert not any(each.get("done") for each in told)
