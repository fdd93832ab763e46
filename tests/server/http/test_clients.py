"""The real clients of other servers, unmodified: `openai` and `ollama` for Python, and recorded requests of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ollama
import pytest
from tests.server.http.conftest import OpenDoor, lines
from tests.waiting import HANG

from batos.client.keys import Keyring

RECORDED = Path(__file__).with_name("recorded_requests.jsonl")
ASKED: Any = [{"role": "user", "content": "How do tides work?"}]


@pytest.fixture(scope="module")
def guest(door: OpenDoor) -> str:
    return Keyring(door.home).new("client", "tcp://127.0.0.1:1").http_key


@pytest.fixture(scope="module")
def openai(door: OpenDoor, guest: str) -> Iterator[Any]:
    """The client of OpenAI, with a guest's key."""
    module = pytest.importorskip("openai", reason="needs openai: pip install batos[dev]")
    with module.OpenAI(base_url=f"{door.url}/v1", api_key=guest, timeout=HANG) as client:
        yield client


# -- openai


def test_openai_completions(openai: Any) -> None:
    """Whole, streamed, by a schema; our own data is kept by the client."""
    whole = openai.chat.completions.create(model="batos:reflex", messages=ASKED, temperature=0.2, seed=1)
    assert whole.choices[0].message.content
    assert whole.usage.total_tokens > 0
    assert whole.model_extra["batos"]["mission"].startswith("m-")
    said, reasons, used = "", set(), 0
    with openai.chat.completions.create(
        model="batos:reflex", messages=ASKED, stream=True, stream_options={"include_usage": True}
    ) as stream:
        for chunk in stream:
            used = chunk.usage.total_tokens if chunk.usage else used
            for choice in chunk.choices:
                said += choice.delta.content or ""
                reasons.add(choice.finish_reason)
    assert said == whole.choices[0].message.content
    assert used > 0
    assert reasons == {None, "stop"}


def test_openai_models_and_embeddings(openai: Any) -> None:
    """The list is read page by page; vectors come packed, which the client asks for by itself."""
    assert {"batos", "robin"} <= {each.id for each in openai.models.list()}
    assert openai.models.retrieve("robin:cycle").owned_by == "batos"
    vectors = openai.embeddings.create(model="x", input=["a", "b"]).data
    assert len(vectors[0].embedding) == len(vectors[1].embedding) > 10


def test_openai_responses(openai: Any) -> None:
    """Created, replied to, streamed, read again."""
    first = openai.responses.create(model="batos:reflex", input="What is a reef?")
    assert first.output_text
    again = openai.responses.retrieve(first.id)
    assert again.output_text == first.output_text
    reply = openai.responses.create(model="batos:reflex", input="Where?", previous_response_id=first.id)
    assert reply.previous_response_id == first.id
    with openai.responses.stream(model="batos:reflex", input="What is an atoll?") as stream:
        kinds = [each.type for each in stream]
        assert stream.get_final_response().output_text
    assert kinds[-1] == "response.completed"


def test_openai_errors(openai: Any, door: OpenDoor) -> None:
    """Each as the client's own class, once: what was accepted is not asked again."""
    module = pytest.importorskip("openai")
    with pytest.raises(module.NotFoundError):
        openai.chat.completions.create(model="gpt-4", messages=ASKED)
    with pytest.raises(module.BadRequestError, match="n: this is not done"):
        openai.chat.completions.create(model="batos", messages=ASKED, n=2)
    with module.OpenAI(base_url=f"{door.url}/v1", api_key="wrong") as other, pytest.raises(module.AuthenticationError):
        other.models.list()
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "required": ["a"]}}}
    before = len(door.missions(limit=1_000))
    with door.saying("no"), pytest.raises(module.APIError):
        openai.chat.completions.create(model="batos", messages=ASKED, response_format=form)
    assert len(door.missions(limit=1_000)) == before + 1
    with door.saying("no"), pytest.raises(module.APIError):
        list(openai.chat.completions.create(model="batos", messages=ASKED, response_format=form, stream=True))


def test_openai_by_a_key_in_the_path(door: OpenDoor, guest: str) -> None:
    """For programs that can set an address and no key."""
    module = pytest.importorskip("openai", reason="needs openai: pip install batos[dev]")
    with module.OpenAI(base_url=f"{door.url}/key/{guest}/v1", api_key="none", timeout=HANG) as client:
        assert client.models.retrieve("robin").id == "robin"


# -- ollama


@pytest.fixture(params=["header", "path"])
def daemon(request: pytest.FixtureRequest, door: OpenDoor, guest: str) -> Iterator[ollama.Client]:
    """The client of Ollama, with the key in a header, or in the address as in OLLAMA_HOST."""
    if request.param == "path":
        client = ollama.Client(f"{door.url}/key/{guest}", timeout=HANG)
    else:
        client = ollama.Client(door.url, headers={"authorization": f"Bearer {guest}"}, timeout=HANG)
    with client:
        yield client


def test_ollama_chats_and_generates(daemon: ollama.Client) -> None:
    """Whole and streamed; thoughts where they are asked for; a schema."""
    whole = daemon.chat("batos/robin:reflex", ASKED)
    assert whole.message.content
    assert (whole.done, whole.done_reason) == (True, "stop")
    streamed = list(daemon.chat("batos/robin:reflex", ASKED, stream=True, think=True))
    assert "".join(each.message.content or "" for each in streamed) == whole.message.content
    assert any(each.message.thinking for each in streamed)
    assert daemon.generate("robin:reflex", "What is a dune?").response
    assert list(daemon.generate("robin:reflex", "What is a dune?", stream=True))[-1].done
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert "a" in json.loads(daemon.chat("batos", ASKED, format=schema).message.content or "")


def test_ollama_lists(daemon: ollama.Client) -> None:
    """Models, running ones, a card, vectors."""
    names = {each.model for each in daemon.list().models}
    assert {"batos:latest", "batos/robin:latest"} <= names
    assert {each.model for each in daemon.ps().models} == names
    assert "completion" in (daemon.show("batos/robin:latest").capabilities or [])
    assert len(daemon.embed("x", ["a", "b"]).embeddings) == 2


def test_ollama_errors(daemon: ollama.Client, door: OpenDoor) -> None:
    """Before the first line by a status, after it by a line."""
    with pytest.raises(ollama.ResponseError, match="has no model 'nope'"):
        daemon.pull("nope")
    with pytest.raises(ollama.ResponseError) as refused:
        daemon.delete("robin")
    assert refused.value.status_code == 403
    schema = {"type": "object", "required": ["a"]}
    with door.saying("no"), pytest.raises(ollama.ResponseError):
        list(daemon.chat("batos", ASKED, format=schema, stream=True))


# -- recorded requests


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def tool(number: int) -> dict[str, Any]:
    """A tool as Open WebUI describes its own, 36 of them in 26 KB."""
    text = {"type": "string", "description": "What it is about, in a few words. " * 12}
    about = {"type": "object", "properties": {"query": text}, "required": ["query"]}
    return {"type": "function", "function": {"name": f"tool_{number}", "description": "Look.", "parameters": about}}


@pytest.mark.parametrize("exchange", recorded(), ids=lambda each: f"{each['client']}: {each['what']}")
def test_recorded_requests_are_answered(door: OpenDoor, guest: str, exchange: dict[str, Any]) -> None:
    """In the forms in which the `ollama` command, Open WebUI, aider and others send them."""
    with door.client(guest, **exchange.get("headers", {})) as client:
        body: str | None = exchange.get("body")
        if body is not None and (number := exchange.get("tools", 0)):
            body = json.dumps({**json.loads(body), "tools": [tool(each) for each in range(number)]})
        path = f"/key/{guest}{exchange['path']}" if exchange["client"] == "ollama" else exchange["path"]
        reply = client.request(exchange["method"], path, content=None if body is None else body.encode())
    assert reply.status_code == exchange["status"], reply.text
    for name, kinds in exchange.get("has", {}).items():
        told: Any = lines(reply)[-1] if "ndjson" in reply.headers["content-type"] else reply.json()
        for step in name.split("."):
            told = told[int(step)] if step.isdigit() else told[step]
        assert type(told).__name__ == kinds, name
