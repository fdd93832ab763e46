"""Responses: kept, replied to, read again, in the background, cancelled."""

from __future__ import annotations

from typing import Any

from tests.server.http.conftest import SCHEMA, OpenDoor, copied_door, frames
from tests.waiting import wait_until

from ollama_emulator.emulator import Options


def create(door: OpenDoor, **given: Any) -> Any:
    with door.client() as client:
        return client.post("/v1/responses", json={"model": "batos:reflex", "input": "How do tides work?", **given})


def show(door: OpenDoor, name: str, verb: str = "") -> Any:
    with door.client() as client:
        return client.post(f"/v1/responses/{name}{verb}") if verb else client.get(f"/v1/responses/{name}")


def test_a_response_is_kept_and_replied_to(door: OpenDoor) -> None:
    """Its text, its usage; the reply goes on in the same conversation, and one to an older turn forks it."""
    first = create(door, instructions="Be brief.", temperature=0.3).json()
    assert (first["object"], first["status"], first["temperature"]) == ("response", "completed", 0.3)
    (item,) = first["output"]
    assert item["content"][0]["type"] == "output_text"
    assert show(door, first["id"]).json()["output"][0]["content"][0]["text"] == item["content"][0]["text"]
    second = create(door, input="And at the poles?", previous_response_id=first["id"]).json()
    assert second["previous_response_id"] == first["id"]
    forked = create(door, input="And in lakes?", previous_response_id=first["id"]).json()
    conversations = [each["batos"]["conversation"] for each in (first, second, forked)]
    assert conversations[0] == conversations[1] != conversations[2]


def test_the_events_of_a_stream_are_numbered_and_whole(door: OpenDoor) -> None:
    """Each with its type and a number, without a gap; the last one has the whole response."""
    told = frames(create(door, stream=True))
    assert [each["sequence_number"] for each in told] == list(range(len(told)))
    kinds = [each["type"].removeprefix("response.") for each in told]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    said = "".join(each["delta"] for each in told if each["type"].endswith("delta"))
    assert said == told[-1]["response"]["output"][0]["content"][0]["text"]
    cut = frames(create(door, stream=True, input="What is a cave?", max_output_tokens=3))[-1]
    assert (cut["type"], cut["response"]["status"]) == ("response.incomplete", "incomplete")


def test_a_failed_response_says_why(door: OpenDoor) -> None:
    """In a stream by its last event."""
    form = {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}
    with door.saying("This is no JSON."):
        told = frames(create(door, stream=True, input="What is snow?", text=form))[-1]
    assert told["type"] == "response.failed"
    assert told["response"]["error"]["message"]


def test_input_may_be_items_and_unknown_ones_are_passed_over(door: OpenDoor) -> None:
    """Messages in parts; results of tools that nobody called are no question."""
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "How deep is the sea?"}]},
        {"type": "function_call_output", "call_id": "x", "output": "9"},
    ]
    reply = create(door, input=items)
    assert door.mission(reply.headers["x-batos-mission"])["brief"]["text"] == "How deep is the sea?"
    unknown = show(door, "resp_nothing")
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "invalid_request_error")
    assert create(door, previous_response_id="x").status_code == 404


def test_one_in_the_background_is_read_and_cancelled(grown_door_home: Any, tmp_path: Any) -> None:
    """It is accepted at once; a cancel ends it; another one ends by itself."""
    with copied_door(grown_door_home, tmp_path, Options(tok_s=5)) as door:
        begun = create(door, background=True).json()
        assert begun["status"] in {"queued", "in_progress"}
        assert show(door, begun["id"], "/cancel").json()["status"] == "cancelled"
        other = create(door, background=True, max_output_tokens=2, input="What is fog?").json()
        wait_until(lambda: show(door, other["id"]).json()["status"] == "incomplete", "the end of the response")
