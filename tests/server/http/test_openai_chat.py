"""Chat completions, models and embeddings, by plain requests: every field that OpenAI's clients read."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from tests.server.http.conftest import ASKED, OpenDoor, frames

CHUNK = {"id", "object", "created", "model", "choices"}


def test_a_completion_has_what_clients_read(door: OpenDoor) -> None:
    """All keys of the format, our own under one key of ours, and the mission in the head."""
    reply = door.chat(ASKED, model="robin:reflex")
    told = reply.json()
    assert reply.status_code == 200
    assert told["object"] == "chat.completion"
    assert told["model"] == "robin:reflex"
    (choice,) = told["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["refusal"] is None
    assert choice["finish_reason"] == "stop"
    assert told["usage"]["total_tokens"] == told["usage"]["prompt_tokens"] + told["usage"]["completion_tokens"] > 0
    mission = door.mission(reply.headers["x-batos-mission"])
    assert told["batos"]["mission"] == mission["id"]
    assert choice["message"]["content"] == mission["answer"]
    assert mission["brief"]["persona"] == "ROBIN"
    assert mission["brief"]["origin"]["door"] == "openai"


def test_a_stream_begins_goes_on_and_ends_as_clients_expect(door: OpenDoor) -> None:
    """A role first, then words and progress under both names, then the end, usage only if asked, then [DONE]."""
    told = frames(door.chat(ASKED, stream=True))
    *chunks, last = told
    assert last == "[DONE]"
    assert all(set(each) - {"usage", "batos"} == CHUNK for each in chunks)
    assert len({(each["id"], each["created"], each["model"]) for each in chunks}) == 1
    deltas = [each["choices"][0]["delta"] for each in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    progress = [each for each in deltas if "reasoning" in each]
    assert progress
    assert all(each["reasoning"] == each["reasoning_content"] for each in progress)
    assert [each["choices"][0]["finish_reason"] for each in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    said = "".join(each.get("content", "") for each in deltas)
    assert said == door.mission(chunks[-1]["batos"]["mission"])["answer"]
    with_usage = frames(door.chat(ASKED, stream=True, stream_options={"include_usage": True}))
    assert with_usage[-2]["choices"] == []
    assert with_usage[-2]["usage"]["total_tokens"] > 0
    assert all(each["usage"] is None for each in with_usage[:-2])


def test_options_reach_the_model_and_only_the_rest_is_named(door: OpenDoor) -> None:
    """What a brief has is honoured; what it does not have stands in a header."""
    options: dict[str, Any] = {"temperature": 0.9, "top_p": 0.4, "seed": 7, "max_completion_tokens": 5}
    reply = door.chat({"role": "user", "content": "How do caves grow?"}, **options, top_k=3, tools=[{"type": "x"}])
    assert reply.headers["x-batos-ignored"] == "tools.x,top_k"
    sent = [each["body"] for each in door.emulator.requests if each["path"] == "/api/chat"][-1]
    asked = {name: sent["options"][name] for name in ("temperature", "top_p", "seed", "num_predict")}
    assert asked == {"temperature": 0.9, "top_p": 0.4, "seed": 7, "num_predict": 5}
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    assert reply.json()["usage"]["completion_tokens"] == 5
    assert "x-batos-ignored" not in door.chat(ASKED, temperature=0.1).headers


def test_a_schema_is_honoured_or_refused_before_anything_runs(door: OpenDoor) -> None:
    """An answer by a schema has it; one that cannot be compiled is 400 and no mission."""
    schema = {"type": "object", "properties": {"tides": {"type": "integer"}}, "required": ["tides"]}
    form = {"type": "json_schema", "json_schema": {"name": "t", "schema": schema}}
    assert "tides" in door.chat(ASKED, response_format=form).json()["choices"][0]["message"]["content"]
    before = door.missions()
    wrong = {"type": "json_schema", "json_schema": {"name": "t", "schema": {"type": "nothing"}}}
    reply = door.chat(ASKED, response_format=wrong)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "schema")
    assert door.missions() == before


def test_an_answer_that_fails_its_schema_is_an_error_frame(door: OpenDoor) -> None:
    """After the one repair: a frame with the error, and no [DONE]."""
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "required": ["a"]}}}
    with door.saying("This is no JSON."):
        told = frames(door.chat(ASKED, response_format=form, stream=True))
    assert told[-1]["error"]["code"] == "decision_invalid"
    assert "[DONE]" not in told


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"temperature": "warm"}, "temperature"),
        ({"temperature": 9}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "queen", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "messages"),
    ],
)
def test_what_would_change_the_meaning_is_refused_by_name(door: OpenDoor, given: dict[str, Any], param: str) -> None:
    """With status 400 and the field, in the form of OpenAI's errors."""
    with door.client() as client:
        reply = client.post("/v1/chat/completions", json={"model": "batos", "messages": [ASKED], **given})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert set(error) == {"message", "type", "param", "code"}


def test_content_may_be_parts_and_roles_may_be_many(door: OpenDoor) -> None:
    """Parts of text are joined, `developer` is a system text, null beside calls of tools is nothing."""
    reply = door.chat(
        {"role": "developer", "content": "Answer briefly."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {
            "role": "user",
            "content": [{"type": "text", "text": "How do"}, {"type": "input_text", "text": "rocks age?"}],
        },
    )
    brief = door.mission(reply.headers["x-batos-mission"])["brief"]
    assert (brief["text"], brief["system"]) == ("How do\nrocks age?", "Answer briefly.")


def test_models_are_listed_and_shown(door: OpenDoor) -> None:
    """The mind, the personas, their efforts, the council; an unknown one is 404 by OpenAI's code."""
    with door.client() as client:
        listed = client.get("/v1/models").json()["data"]
        names = [each["id"] for each in listed]
        assert {"batos", "robin", "brick", "babs", "alfred", "council", "robin:reflex", "batos:cycle"} <= set(names)
        assert client.get("/v1/models/robin").json() == listed[names.index("robin")]
        unknown = client.get("/v1/models/gpt-4")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert door.chat(ASKED, model="gpt-4").status_code == 404


def test_embeddings_are_floats_or_packed(door: OpenDoor) -> None:
    """In the order of the texts; in base64 as little-endian numbers of four bytes."""
    with door.client() as client:
        plain = client.post("/v1/embeddings", json={"input": ["a tide", "a cave"], "model": "x"}).json()
        one = {"input": "a tide", "encoding_format": "base64"}
        packed = client.post("/v1/embeddings", json=one).json()["data"][0]["embedding"]
        refused = client.post("/v1/embeddings", json={"input": [1, 2]})
    assert [each["index"] for each in plain["data"]] == [0, 1]
    numbers = base64.b64decode(packed)
    assert list(struct.unpack(f"<{len(numbers) // 4}f", numbers)) == pytest.approx(plain["data"][0]["embedding"])
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input")


def test_citations_stand_in_the_text_and_beside_it(door: OpenDoor) -> None:
    """A mark with the file's line behind the sentence, in a stream and in a whole reply, and an annotation of it."""
    log = {"role": "assistant", "content": "The harbour log.\n\nThe crane of pier four fell on the ninth of May 1931."}
    asked = {"role": "user", "content": "When did the crane of pier four fall?"}
    with door.saying("The crane of pier four fell on the ninth of May 1931."):
        whole = door.chat({"role": "user", "content": "Read it."}, log, asked).json()["choices"][0]["message"]
        streamed = frames(door.chat({"role": "user", "content": "Read this."}, log, asked, stream=True))
    said = "".join(each["choices"][0]["delta"].get("content", "") for each in streamed[:-1])
    assert said == whole["content"] == "The crane of pier four fell on the ninth of May 1931. [earlier.txt:5]"
    for noted in (whole["annotations"], streamed[-2]["choices"][0]["delta"]["annotations"]):
        (note,) = [each["url_citation"] for each in noted]
        assert said[note["start_index"] : note["end_index"]] == "The crane of pier four fell on the ninth of May 1931."
        assert "earlier.txt" in note["title"]
        with door.client() as client:
            assert client.get(note["url"].partition("#")[0]).json()["status"] == "done"


def test_code_gets_no_marks(door: OpenDoor) -> None:
    """Editors write what stands there into files, by the names before it; annotations are kept."""
    code = "calc.py\n```\ndef add(a, b):\n    return a + b\n\n# Adds two numbers and returns the sum of both.\n```"
    shown = {"role": "user", "content": f"The file is:\n{code}"}
    asked = {"role": "user", "content": "Change add to return the sum of both numbers in the file."}
    with door.saying(f"Here is the file.\n\n{code}"):
        whole = door.chat(shown, {"role": "assistant", "content": f"Ok.\n{code}"}, asked)
        streamed = frames(door.chat(shown, {"role": "assistant", "content": f"Yes.\n{code}"}, asked, stream=True))
    message = whole.json()["choices"][0]["message"]
    said = "".join(each["choices"][0]["delta"].get("content", "") for each in streamed[:-1])
    assert said == message["content"] == f"Here is the file.\n\n{code}"
    assert message["annotations"]
