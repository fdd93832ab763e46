"""Faults on order: which request they strike and what its client sees."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start, pass_time
from tests.waiting import a_moment, until

from ollama_emulator.clocks import ManualClock
from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.faults import KINDS, FaultList, InjectedFault
from ollama_emulator.pulling.registry import RegistryEntry, read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "emulator.md"

BODY: dict[str, Any] = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "What is water made of?"}]}
WHOLE = {**BODY, "stream": False}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 50}}, "required": ["a"]}


async def _stream(client: Client, **more: Any) -> list[str]:
    return (await client.http.post("/api/chat", json={**BODY, **more})).text.splitlines()


@pytest.mark.parametrize("body", [BODY, WHOLE])
async def test_cut(client: Client, body: dict[str, Any]) -> None:
    """The connection closes within the reply, once."""
    client.emulator.faults.add({"do": "cut"})
    with pytest.raises(httpx.RemoteProtocolError):
        await client.http.post("/api/chat", json=body)
    assert (await client.http.post("/api/chat", json=body)).status_code == 200


async def test_cut_before_any_reply(client: Client) -> None:
    """With `after` 0 not even a status comes."""
    client.emulator.faults.add({"do": "cut", "after": 0})
    with pytest.raises(httpx.RemoteProtocolError):
        await client.http.post("/api/chat", json=WHOLE)


async def test_no_done(client: Client) -> None:
    """A stream without its last line; a whole reply that says done: false."""
    client.emulator.faults.add({"do": "no_done", "times": 2})
    assert not any(json.loads(line)["done"] for line in await _stream(client))
    reply = (await client.http.post("/api/chat", json=WHOLE)).json()
    assert reply["done"] is False
    assert "done_reason" not in reply


async def test_error_line(client: Client) -> None:
    """A 200 whose last line is an error; a whole reply is refused."""
    client.emulator.faults.add({"do": "error_line", "after": 2, "error": "out of paper", "times": 2})
    lines = await _stream(client)
    assert len(lines) == 3
    assert json.loads(lines[2]) == {"error": "out of paper"}
    assert (await client.http.post("/api/chat", json=WHOLE)).status_code == 500


async def test_bad_line(client: Client) -> None:
    """A line that is no JSON stands in the stream."""
    client.emulator.faults.add({"do": "bad_line"})
    assert (await _stream(client))[1] == '{"broken'


async def test_status(client: Client) -> None:
    """Any status and text, on any path."""
    client.emulator.faults.add({"match": {"path": "/api/tags"}, "do": "status", "status": 503, "error": "busy"})
    reply = await client.http.get("/api/tags")
    assert (reply.status_code, reply.json()) == (503, {"error": "busy"})


async def test_stall(start: Start) -> None:
    """Nothing comes until the time is over."""
    clock = ManualClock()
    async with start(clock) as client:
        client.emulator.faults.add({"do": "stall", "seconds": 30})
        asked = asyncio.create_task(_stream(client))
        await until(lambda: client.emulator.faults.orders[0].struck, "the request")
        await a_moment()
        assert not asked.done()
        await pass_time(clock, asked, step=31)
        assert json.loads(asked.result()[-1])["done"]


async def test_nel(client: Client) -> None:
    """A raw U+0085 stands in the words, as the daemon sends it."""
    client.emulator.faults.add({"do": "nel"})
    assert b"\xc2\x85" in (await client.http.post("/api/chat", json=WHOLE)).content


@pytest.mark.parametrize("kind", ["blanks", "repeat"])
async def test_runaways_go_on_until_the_limit(client: Client, kind: str) -> None:
    """A run of blanks or of one word fills num_predict, also where a schema is asked for."""
    client.emulator.faults.add({"do": kind})
    reply = (
        await client.http.post("/api/chat", json={**WHOLE, "format": SCHEMA, "options": {"num_predict": 50}})
    ).json()
    assert (reply["done_reason"], reply["eval_count"]) == ("length", 50)
    assert reply["message"]["content"].startswith("{")


async def test_broken_json(client: Client) -> None:
    """The answer to a schema is no JSON."""
    client.emulator.faults.add({"do": "broken_json"})
    reply = (await client.http.post("/api/chat", json={**WHOLE, "format": SCHEMA})).json()
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(reply["message"]["content"])


async def test_text(client: Client) -> None:
    """The answer is what the order says."""
    client.emulator.faults.add({"do": "text", "text": "Forty-two."})
    assert (await client.chat())["message"]["content"] == "Forty-two."


async def test_a_runner_killed_while_loading(client: Client) -> None:
    """Its request is refused with the daemon's words; the next one loads by itself."""
    await client.chat()
    client.emulator.faults.add({"do": "kill_load"})
    reply = await client.http.post("/api/chat", json=BODY)
    assert reply.status_code == 500
    assert reply.json() == {"error": "llama-server process has terminated: signal: killed"}
    assert await client.ps() == []
    assert (await client.chat())["done"]


async def test_a_runner_killed_while_answering(client: Client) -> None:
    """The stream ends with an error line, a whole reply is a 500; ps goes on listing the dead runner."""
    words = {"error": "an error was encountered while running the model: unexpected EOF"}
    client.emulator.faults.add({"do": "kill_answer", "after": 2, "times": 2})
    lines = await _stream(client)
    assert len(lines) == 3
    assert json.loads(lines[-1]) == words
    assert len(await client.ps()) == 1
    whole = await client.http.post("/api/chat", json=WHOLE)
    assert (whole.status_code, whole.json()) == (500, words)
    assert (await client.chat())["done"]
    assert client.emulator.scheduler.loads == 3


async def test_spill_and_overflow(client: Client) -> None:
    """The next load lies half on the CPU; a prompt is said not to fit, with its counts."""
    client.emulator.faults.add({"do": "spill"})
    await client.chat()
    row = (await client.ps())[0]
    assert 0 < row["size_vram"] < row["size"]
    client.emulator.faults.add({"do": "overflow", "n_prompt_tokens": 9000, "n_ctx": 4096})
    reply = await client.http.post("/api/chat", json=WHOLE)
    inner = json.loads(reply.json()["error"])["error"]
    assert (reply.status_code, inner["n_prompt_tokens"], inner["n_ctx"]) == (400, 9000, 4096)


async def test_a_prompt_may_be_cut_without_a_word(client: Client) -> None:
    """200, and only the count of what was read gives it away."""
    client.emulator.faults.add({"do": "truncate", "tokens": 30})
    messages = [{"role": "user", "content": "What is water made of? " * 40}]
    cut = await client.chat(messages=messages)
    whole = await client.chat(messages=messages)
    assert cut["done_reason"] == "stop"
    assert cut["prompt_eval_count"] <= 30 < whole["prompt_eval_count"]


async def test_memory_that_runs_out_in_an_answer_unloads_all(client: Client) -> None:
    """The text goes to its client, and every runner goes as soon as it is idle."""
    await client.chat()
    await client.post("/api/embed", model=EMBEDDER, input="x")
    client.emulator.faults.add({"do": "kill_answer", "error": "CUDA error: out of memory"})
    reply = await client.http.post("/api/chat", json=WHOLE)
    assert (reply.status_code, reply.json()) == (500, {"error": "CUDA error: out of memory"})
    assert await client.ps() == []


async def test_a_fault_strikes_the_nth_request_that_matches(client: Client) -> None:
    """Counting only those with its path and model."""
    client.emulator.faults.add({"match": {"path": "/api/chat", "model": CHAT_MODEL, "nth": 2}, "do": "status"})
    await client.http.get("/api/tags")
    codes = [(await client.http.post("/api/chat", json=WHOLE)).status_code for _ in range(3)]
    assert codes == [200, 500, 200]


async def test_faults_are_ordered_over_the_wire(client: Client) -> None:
    """POST adds one or a list, DELETE takes all back; the log tells what was asked."""
    assert (await client.post("/_emulator/fault", do="nonsense")).status_code == 400
    assert (await client.http.post("/_emulator/fault", content=b"[" * 100_000)).status_code == 400
    await client.http.post("/_emulator/fault", json=[{"do": "status"}, {"do": "status", "status": 418}])
    codes = [(await client.http.post("/api/chat", json=WHOLE)).status_code for _ in range(3)]
    assert codes == [500, 418, 200]
    await client.post("/_emulator/fault", do="status", times=100)
    await client.http.delete("/_emulator/fault")
    assert (await client.http.post("/api/chat", json=WHOLE)).status_code == 200
    log = (await client.http.get("/_emulator/log")).json()["requests"]
    assert [(entry["path"], entry["status"]) for entry in log][:2] == [("/api/chat", 500), ("/api/chat", 418)]


async def test_control_is_off_unless_asked_for(start: Start) -> None:
    """Without `control` there is no such path."""
    async with start() as client:
        assert (await client.post("/_emulator/fault", do="cut")).status_code == 404


async def test_a_file_of_faults(start: Start, tmp_path: Path) -> None:
    """Read at the start; one that is wrong is refused there."""
    file = tmp_path / "faults.json"
    file.write_text(json.dumps([{"do": "status", "status": 418}]))
    async with start(faults=file) as client:
        assert (await client.http.post("/api/chat", json=WHOLE)).status_code == 418
    file.write_text('[{"do": "dance"}]')
    with pytest.raises(OptionError, match='is "dance", not a fault'):
        async with start(faults=file):
            pass


@pytest.mark.parametrize(
    ("described", "field", "remedy"),
    [
        ("cut", "fault", "Write"),
        ({}, "fault.do", "It is one of"),
        ({"do": ["cut"]}, "fault.do", "It is one of"),
        ({"do": "cut", "after": -1}, "fault.after", "a whole number of at least 0"),
        ({"do": "cut", "after": True}, "fault.after", "a whole number"),
        ({"do": "cut", "afterwards": 1}, "fault.afterwards", "`cut` takes after"),
        ({"do": "nel", "after": 1}, "fault.after", "takes nothing"),
        ({"do": "status", "status": 200}, "fault.status", "from 400 to 599"),
        ({"do": "text"}, "fault.text", "needs it"),
        ({"do": "spill", "share": 1.5}, "fault.share", "from 0 to 1"),
        ({"do": "stall", "seconds": "long"}, "fault.seconds", "a number"),
        ({"do": "stall", "seconds": float("inf")}, "fault.seconds", "a number"),
        ({"do": "stall", "seconds": float("nan")}, "fault.seconds", "a number"),
        ({"do": "cut", "after": 10**400}, "fault.after", "a whole number"),
        ({"do": "cut", "times": 0}, "fault.times", "at least 1"),
        ({"do": "cut", "match": []}, "fault.match", "path"),
        ({"do": "cut", "match": {"nth": 0}}, "fault.match.nth", "at least 1"),
        ({"do": "cut", "match": {"modell": "x"}}, "fault.match.modell", "model"),
    ],
)
def test_a_wrong_fault_is_refused_with_its_field_and_a_remedy(described: Any, field: str, remedy: str) -> None:
    """Nothing is guessed, and nothing that nobody knows is passed over."""
    with pytest.raises(OptionError) as refused:
        InjectedFault.parse(described)
    assert refused.value.field == field
    assert remedy in refused.value.remedy


def test_a_list_with_a_wrong_fault_adds_none() -> None:
    """The place in the list is told."""
    faults = FaultList()
    with pytest.raises(OptionError) as refused:
        faults.add([{"do": "cut"}, {"do": "cut", "after": "x"}])
    assert refused.value.field == "fault[1].after"
    assert faults.orders == []


@pytest.mark.parametrize("text", ["{", '{"fault": []}', '{"faults": {}}', '"cut"', '{"faults": [], "more": 1}'])
def test_a_file_that_is_no_list_of_faults_is_refused(tmp_path: Path, text: str) -> None:
    """Before anything listens."""
    file = tmp_path / "faults.json"
    file.write_text(text)
    with pytest.raises(OptionError) as refused:
        Emulator(Options(faults=file))
    assert refused.value.remedy


async def test_faults_are_shown_with_their_counts(client: Client) -> None:
    """What fitted, what was struck; state shows the runners, the queue and the settings."""
    order = {"match": {"path": "/api/tags", "every": 2}, "do": "status", "status": 503}
    await client.http.post("/_emulator/fault", json=order)
    for _ in range(3):
        await client.http.get("/api/tags")
    shown = (await client.http.get("/_emulator/fault")).json()["faults"]
    assert shown == [{**order, "seen": 3, "struck": 1}]
    await client.chat()
    state = (await client.http.get("/_emulator/state")).json()
    assert (state["loads"], state["queued"], state["loading"]) == (1, 0, None)
    assert state["runners"][0]["model"] == CHAT_MODEL
    assert state["settings"]["max_queue"] == 512


async def test_a_fault_of_a_load_strikes_one_base(start: Start) -> None:
    """What else is loaded stays as it is."""
    async with start(vram=0) as client:
        await client.chat()
        await client.post("/api/embed", model=EMBEDDER, input="x")
        client.emulator.faults.add({"do": "kill_load"})
        assert (await client.http.post("/api/chat", json=WHOLE)).status_code == 500
        assert [row["name"] for row in await client.ps()] == [EMBEDDER]
        await client.post("/api/embed", model=EMBEDDER, input="x")
        assert client.emulator.scheduler.loads == 3


def _examples() -> list[Any]:
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [json.loads(block) for block in blocks]


def test_every_fault_is_documented_with_an_example() -> None:
    """The page's examples are accepted, and show each kind."""
    faults = FaultList()
    for example in _examples():
        if isinstance(example, list) or "do" in example:
            faults.add(example)
    assert {order.do for order in faults.orders} == set(KINDS)
    text = PAGE.read_text("utf-8")
    for name, kind in KINDS.items():
        assert f"`{name}`" in text
        assert all(f"`{key}`" in text for key in kind.takes)


def test_the_registry_file_is_documented(tmp_path: Path) -> None:
    """The page's example is accepted, and every field of a model is named."""
    example = next(found for found in _examples() if isinstance(found, dict) and "models" in found)
    file = tmp_path / "registry.json"
    file.write_text(json.dumps(example))
    assert read(file).entries
    text = PAGE.read_text("utf-8")
    assert [name for name in RegistryEntry.__dataclass_fields__ if name != "name" and f"`{name}`" not in text] == []
