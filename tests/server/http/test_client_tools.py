"""Tools that clients send: chosen by rule, called in words of OpenAI and Ollama, and what they bring as evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.http.conftest import ASKED, OpenDoor, copied_door, frames, open_door
from tests.waiting import HANG

from batos.client.keys import Keyring
from batos.protocol.errors import BriefError
from batos.server.http.client_tools import choose_tools, read_tools
from batos.server.http.sent_messages import SentMessages

RECORDED = Path(__file__).with_name("sent_tools.json")
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get-weather",
        "description": "Tell the weather of a town.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
MAIL: Any = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": "Send a mail.",
        "parameters": {
            "type": "object",
            "properties": {"to": {"type": "string", "format": "email"}, "parts": {"type": "object"}},
            "required": ["to"],
        },
    },
}
WANTS = {"role": "user", "content": "What is the weather in Oslo?"}
BROUGHT = "In Oslo it snows, and it is four degrees below zero."


def many() -> list[dict[str, Any]]:
    """36 tools, as many as Open WebUI sends with each message, under its names for them."""
    found: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def handed(door: OpenDoor, *messages: dict[str, Any], **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message with the call that a question ends with, and its mission."""
    reply = door.chat(*messages or (WANTS,), tools=[MAIL, WEATHER], **more)
    assert reply.status_code == 200, reply.text
    (choice,) = reply.json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    return choice["message"], door.mission(reply.headers["x-batos-mission"])


def result(message: Mapping[str, Any], text: str = BROUGHT) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": text}


def test_a_question_ends_with_the_call_that_it_wants(door: OpenDoor) -> None:
    """The mission is done, without a call of a model where a rule binds all; it is no turn and is not remembered."""
    before = len(door.emulator.requests)
    message, mission = handed(door)
    (call,) = message["tool_calls"]
    assert message["content"] is None
    assert call["function"] == {"name": "get-weather", "arguments": '{"place": "Oslo"}'}
    assert call["id"] == f"call_{mission['id'].removeprefix('m-')}"
    assert mission["status"] == "done"
    assert mission["cost"]["calls"] == 0
    assert not [each for each in list(door.emulator.requests)[before:] if each["path"] == "/api/chat"]
    assert door.mind.readings.turns(mission["brief"]["conversation"])["turns"] == []
    with door.mind.image.snapshot() as root:
        assert mission["id"] not in root["unremembered"]


def test_its_result_is_evidence_and_goes_on_in_the_conversation(door: OpenDoor) -> None:
    """A file by the tool's name, of no trust, cited; the next question finds the one turn that there was."""
    message, mission = handed(door)
    with door.saying(BROUGHT):
        reply = door.chat(WANTS, message, result(message), tools=[MAIL, WEATHER])
    (choice,) = reply.json()["choices"]
    follows = door.mission(reply.headers["x-batos-mission"])
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", f"{BROUGHT} [get-weather.txt:1]")
    assert follows["brief"]["in_reply_to"] == mission["id"]
    assert follows["brief"]["conversation"] == mission["brief"]["conversation"]
    assert [each["name"] for each in follows["brief"]["attachments"]] == ["get-weather.txt"]
    assert follows["trust"]["lineage"] == "external"
    assert "tools" not in follows["brief"]
    sent = json.dumps([each["body"] for each in door.emulator.requests if each["path"] == "/api/chat"][-1])
    assert "get-weather {" not in sent
    on = door.chat(WANTS, message, result(message), choice["message"], ASKED, tools=[WEATHER])
    assert door.mission(on.headers["x-batos-mission"])["brief"]["conversation"] == mission["brief"]["conversation"]
    page = door.mind.readings.turns(mission["brief"]["conversation"])
    assert [each["question"] for each in page["turns"]] == [WANTS["content"], ASKED["content"]]


def test_calls_of_others_are_evidence_too(door: OpenDoor) -> None:
    """A result of a call that we never handed out, without an id or a text, replies to nothing."""
    made = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": "no"}}]}
    reply = door.chat(WANTS, made, {"role": "tool", "content": ""})
    brief = door.mission(reply.headers["x-batos-mission"])["brief"]
    assert [each["name"] for each in brief["attachments"]] == ["look.txt"]
    assert brief.get("in_reply_to") is None, {**brief, "attachments": 0}


def test_after_a_restart_a_result_finds_its_call(grown_door_home: Path, tmp_path: Path) -> None:
    """By the image; not for another user, who sees the same messages."""
    with copied_door(grown_door_home, tmp_path) as door:
        message, mission = handed(door)
    with open_door(tmp_path / "home") as door:
        door.portal.run(door.mind.readiness.genesis)
        guest = Keyring(door.home).new("laptop", "tcp://127.0.0.1:1").http_key
        found = [door.chat(WANTS, message, result(message), key=key) for key in (None, guest)]
        briefs = [door.mission(each.headers["x-batos-mission"])["brief"] for each in found]
        assert briefs[0]["in_reply_to"] == mission["id"]
        assert "in_reply_to" not in briefs[1]


def prompts(door: OpenDoor, question: str, path: str, **more: Any) -> list[bytes]:
    """All that the model was sent for a question, asked anew."""
    before = len(door.emulator.requests)
    body = {"model": "batos:cycle", "messages": [{"role": "user", "content": question}], "stream": False, **more}
    with door.client() as client:
        assert client.post(path, json=body).status_code == 200
    made = [each for each in list(door.emulator.requests)[before:] if each["path"] == "/api/chat"]
    return [json.dumps(each["body"]).encode() for each in made]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
def test_tools_that_are_not_wanted_change_no_byte_of_a_prompt(grown_door_home: Path, tmp_path: Path, path: str) -> None:
    """Nor are there more prompts: the same question, to two copies of a home, without the 36 tools and with them."""
    question, sent = "How do tides work?", []
    for name, more in (("without", {}), ("with", {"tools": many()})):
        with copied_door(grown_door_home, tmp_path / name) as door:
            sent.append(prompts(door, question, path, **more))
    assert sent[0] == sent[1] != []


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("How do tides work?", ""), ("Who wrote Faust?", ""), ("How do I read a file in Python?", ""),
        ("What is a good name for a note-taking app?", ""), ("Which message did the Rosetta stone carry?", ""),
        ("Write a note to my landlord about the heating.", ""), ("Was ist die Hauptstadt von Peru?", ""),
        ("Search the web for the newest Rust release.", "search_web"), ("Fetch https://a.example/b", "fetch_url"),
        ("What did I say about my cat in earlier chats?", "search_chats"),
        ("Generate an image of a pier", "generate_image"),
    ],
)  # fmt: skip
def test_of_many_tools_the_one_is_chosen_that_a_question_speaks_of(question: str, tool: str) -> None:
    """By its words alone; most questions speak of none."""
    sent, ignored = read_tools({"tools": many()}, "auto")
    assert sent is not None
    assert ignored == ["tools.create_tasks"]  # what it needs is no plain value
    fields = choose_tools(sent, SentMessages(question), date(2026, 11, 30))
    assert [each["name"] for each in fields.get("tools", ())] == [tool][: bool(tool)]


def test_a_stream_has_the_call_before_its_end(door: OpenDoor) -> None:
    """In one chunk with its index, and no word of an answer."""
    *chunks, done = frames(door.chat(WANTS, tools=[WEATHER], stream=True))
    deltas = [each["choices"][0]["delta"] for each in chunks]
    assert done == "[DONE]"
    assert not any(each.get("content") for each in deltas)
    (call,) = next(each["tool_calls"] for each in deltas if "tool_calls" in each)
    assert (call["index"], call["type"], json.loads(call["function"]["arguments"])) == (
        0,
        "function",
        {"place": "Oslo"},
    )
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_choice_is_honoured(door: OpenDoor) -> None:
    """`none` calls nothing; a named tool is called though nothing speaks of it; missing arguments are asked."""
    assert door.chat(WANTS, tools=[WEATHER], tool_choice="none").json()["choices"][0]["finish_reason"] == "stop"
    named = {"type": "function", "function": {"name": "get-weather"}}
    message, mission = handed(door, ASKED, tool_choice=named)
    assert message["tool_calls"][0]["function"]["name"] == "get-weather"
    assert mission["brief"]["tool_choice"] == "required"
    message, _ = handed(door, tool_choice="required")
    assert message["tool_calls"]
    with door.saying('{"to": "nobody"}'):  # does not stand in the question
        sent = {"role": "user", "content": "Greet her."}
        reply = door.chat(sent, tools=[MAIL], tool_choice="required")
    assert (reply.status_code, reply.json()["error"]["param"]) == (503, "tool_choice")


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "other"}}, "tools": [WEATHER]},
        {"tool_choice": "any", "tools": [WEATHER]},
        {"tool_choice": "required", "tools": [{"type": "web_search"}]},
    ],
)
def test_a_choice_that_cannot_be_honoured_is_refused(door: OpenDoor, more: dict[str, Any]) -> None:
    """Before anything runs."""
    reply = door.chat(WANTS, **more)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "tool_choice")


def test_tools_may_be_ignored(grown_door_home: Path, tmp_path: Path) -> None:
    """By a setting; they are named then, and no model is said to call any."""
    with copied_door(grown_door_home, tmp_path, client_tools="ignore") as door:
        reply = door.chat(WANTS, tools=[WEATHER])
        assert reply.json()["choices"][0]["finish_reason"] == "stop"
        assert reply.headers["x-batos-ignored"] == "tools"
        assert door.chat(WANTS, tools=[WEATHER], tool_choice="required").status_code == 400
        with door.client() as client:
            assert "tools" not in client.post("/api/show", json={"model": "robin"}).json()["capabilities"]


def test_a_response_is_a_call_and_its_output_goes_on(door: OpenDoor) -> None:
    """By the response before, or by the call's id where a client sends all again; events are numbered without a gap."""
    flat = {"type": "function", **WEATHER["function"]}
    asked = {"model": "batos:reflex", "input": WANTS["content"], "tools": [flat, {"type": "web_search"}]}
    with door.client() as client:
        first = client.post("/v1/responses", json=asked)
        (item,) = first.json()["output"]
        output = {"type": "function_call_output", "call_id": item["call_id"], "output": BROUGHT}
        by_response = {"input": [output], "previous_response_id": first.json()["id"]}
        by_call = {"input": [{"role": "user", "content": WANTS["content"]}, item, output]}
        again = [
            client.post("/v1/responses", json={"model": "batos:reflex", **each}) for each in (by_response, by_call)
        ]
        told = frames(client.post("/v1/responses", json={**asked, "stream": True}))
    assert first.headers["x-batos-ignored"] == "tools.web_search"
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "get-weather", '{"place": "Oslo"}')
    mission = first.headers["x-batos-mission"]
    for reply in again:
        brief = door.mission(reply.headers["x-batos-mission"])["brief"]
        assert (brief["in_reply_to"], brief["text"]) == (mission, WANTS["content"])
        assert [each["name"] for each in brief["attachments"]] == ["get-weather.txt"]
        assert reply.json()["output"][0]["type"] == "message"
    kinds = [each["type"].removeprefix("response.") for each in told]
    assert [each["sequence_number"] for each in told] == list(range(len(told)))
    called = [each for each in kinds if "function_call" in each or "output_item" in each]
    assert called == ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
                      "output_item.done"]  # fmt: skip
    assert told[-1]["response"]["output"][0]["name"] == "get-weather"


def test_ollama_has_arguments_as_an_object(door: OpenDoor) -> None:
    """In a line before the last; its client, unmodified, sends the result without an id."""
    with ollama.Client(f"{door.url}/key/{door.token}", timeout=HANG) as client:
        whole = client.chat("batos:reflex", [WANTS], tools=[WEATHER])
        streamed = list(client.chat("batos:reflex", [WANTS], tools=[WEATHER], stream=True))
        for said in (whole.message, next(each.message for each in streamed if each.message.tool_calls)):
            (call,) = list(said.tool_calls or ())
            assert (call.function.name, call.function.arguments) == ("get-weather", {"place": "Oslo"})
        assert streamed[-1].done
        assert not streamed[-1].message.tool_calls
        brought = {"role": "tool", "tool_name": "get-weather", "content": BROUGHT}
        with door.saying(BROUGHT):
            answer = client.chat("batos:reflex", [WANTS, whole.message, brought], tools=[WEATHER])
        assert answer.message.content == f"{BROUGHT} [get-weather.txt:1]"


def test_openai_client_calls_and_goes_on(door: OpenDoor) -> None:
    """Unmodified, whole and streamed."""
    module = pytest.importorskip("openai", reason="needs openai: pip install batos[dev]")
    with module.OpenAI(base_url=f"{door.url}/v1", api_key=door.token, timeout=HANG) as client:
        asked: dict[str, Any] = {"model": "batos:reflex", "tools": [WEATHER]}
        message = client.chat.completions.create(messages=[WANTS], **asked).choices[0].message
        assert json.loads(message.tool_calls[0].function.arguments) == {"place": "Oslo"}
        with client.chat.completions.stream(messages=[WANTS], **asked) as stream:
            final = stream.get_final_completion().choices[0]
        assert (final.finish_reason, final.message.tool_calls[0].function.name) == ("tool_calls", "get-weather")
        brought = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": BROUGHT}
        with door.saying(BROUGHT):
            told = client.chat.completions.create(messages=[WANTS, message, brought], **asked)
        assert told.choices[0].message.content.startswith(BROUGHT)
        response = client.responses.create(
            model="batos:reflex", input=WANTS["content"], tools=[{"type": "function", **WEATHER["function"]}]
        )
        assert response.output[0].type == "function_call"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "function", "name", "parameters", "properties", "required", "description", "enum",
                         "anyOf", "string", "a"]), inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON, JSON)
def test_whatever_is_sent_as_tools_is_read_or_refused_by_name(tools: Any, chosen: Any) -> None:
    """What is read can be declared in a brief, and chosen from."""
    try:
        sent, _ = read_tools({"tools": tools, "tool_choice": chosen}, "auto")
    except BriefError as error:
        assert error.field in {"tools", "tool_choice"}
        return
    if sent is not None:
        choose_tools(sent, SentMessages("What is the weather in Oslo?"), date(2026, 11, 30))
