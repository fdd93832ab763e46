"""Blobs, manifests, create with adapters, pull from the simulated registry."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, Client, Start, pass_time
from tests.waiting import until

from ollama_emulator.clocks import ManualClock
from ollama_emulator.emulator_errors import OptionError


async def _upload(client: Client, data: bytes) -> str:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    reply = await client.http.post(f"/api/blobs/{digest}", content=data)
    assert reply.status_code in (200, 201), reply.text
    return digest


def _adapter(width: int, architecture: str = "llama") -> bytes:
    """The smallest GGUF that says it is a LoRA for weights of this width."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(8, "little") + value.encode()

    pairs = {"general.architecture": architecture, "general.type": "adapter", "adapter.type": "lora"}
    head = b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") + len(pairs).to_bytes(8, "little")
    for key, value in pairs.items():
        head += text(key) + (8).to_bytes(4, "little") + text(value)
    head += text("blk.0.attn_q.weight.lora_a") + (2).to_bytes(4, "little")
    return head + width.to_bytes(8, "little") + (4).to_bytes(8, "little") + bytes(12)


async def test_a_blob_is_streamed_to_the_store(client: Client) -> None:
    """An upload in chunks without a length, larger than any JSON body would be let in with 1 MiB pieces."""
    data = bytes(range(256)) * 4096 * 3
    digest = "sha256:" + hashlib.sha256(data).hexdigest()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 1 << 16):
            yield data[at : at + (1 << 16)]

    assert (await client.http.head(f"/api/blobs/{digest}")).status_code == 404
    assert (await client.http.post(f"/api/blobs/{digest}", content=pieces())).status_code == 201
    assert (await client.http.head(f"/api/blobs/{digest}")).status_code == 200
    assert client.emulator.store.content(digest) == data


async def test_an_upload_that_breaks_off_leaves_nothing(client: Client) -> None:
    """Neither a blob nor a file."""
    digest = "sha256:" + "0" * 64
    host, _, port = client.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /api/blobs/{digest} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n".encode()
    writer.write(head + b"x" * 100)
    await writer.drain()
    await until(lambda: client.emulator.requests)
    writer.close()
    await until(lambda: not list(Path(client.emulator.store.uploads).glob("*")))
    assert digest not in client.emulator.store.blobs


async def test_a_persona_is_made_from_a_base(client: Client) -> None:
    """System and parameters are layers of their own; its parent is named and its weights are shared."""
    reply = await client.post(
        "/api/create",
        model="batos-robin:0123456789ab",
        **{"from": CHAT_MODEL, "system": "You are ROBIN.", "parameters": {"num_ctx": 4096}, "stream": False},
    )
    assert reply.json() == {"status": "success"}
    shown = (await client.post("/api/show", model="batos-robin:0123456789ab")).json()
    base = (await client.post("/api/show", model=CHAT_MODEL)).json()
    assert shown["system"] == "You are ROBIN."
    assert "num_ctx                        4096" in shown["parameters"]
    assert shown["details"]["parent_model"] == CHAT_MODEL
    lines = [line for text in (shown, base) for line in text["modelfile"].split("\n") if line.startswith("FROM ")]
    assert lines[0] == lines[1]


async def test_the_same_create_again_changes_nothing(client: Client) -> None:
    """Every layer is there already, and the digest is the same."""
    asked = {"model": "brick", "from": CHAT_MODEL, "system": "You are BRICK."}
    await client.lines("/api/create", **asked)
    before = client.emulator.daemon.all()[0].manifest.digest
    again = await client.lines("/api/create", **asked)
    assert not any("creating new" in line["status"] for line in again)
    assert client.emulator.daemon.all()[0].manifest.digest == before


async def test_an_adapter_that_fits_is_fused(client: Client) -> None:
    """show names it, and the model is answered by another runner than the base."""
    digest = await _upload(client, _adapter(3072))
    await client.lines("/api/create", model="robin", **{"from": CHAT_MODEL, "adapters": {"a.gguf": digest}})
    assert (
        f"ADAPTER /emulator/models/blobs/{digest.replace(':', '-')}"
        in ((await client.post("/api/show", model="robin")).json()["modelfile"])
    )
    await client.chat()
    await client.chat(model="robin")
    assert client.emulator.scheduler.loads == 2


@pytest.mark.parametrize("adapter", [_adapter(64), _adapter(3072, "qwen2")])
async def test_an_adapter_for_other_weights_is_taken_and_fails_at_load(client: Client, adapter: bytes) -> None:
    """After it has thrown out the runner that served, and without a word of why."""
    await client.chat()
    digest = await _upload(client, adapter)
    made = await client.lines("/api/create", model="bad", **{"from": CHAT_MODEL, "adapters": {"a.gguf": digest}})
    assert made[-1] == {"status": "success"}
    reply = await client.post("/api/chat", model="bad", messages=[{"role": "user", "content": "x"}], stream=False)
    assert reply.status_code == 500
    assert reply.json() == {"error": "llama-server process has terminated: exit status 1"}
    assert await client.ps() == []


async def test_pull_tells_its_progress(client: Client) -> None:
    """From the manifest over growing counts, short of the total, to success; once there, one line a layer."""
    first = await client.lines("/api/pull", model="llama3.2:1b")
    counts = [line.get("completed", 0) for line in first if line.get("total", 0) > 10**6]
    assert counts == sorted(counts)
    assert counts[-1] < first[1]["total"]
    assert [line["status"] for line in first[-3:]] == ["verifying sha256 digest", "writing manifest", "success"]
    again = await client.lines("/api/pull", model="llama3.2:1b")
    assert all(line["completed"] == line["total"] for line in again if "total" in line)


async def test_a_pull_that_was_left_goes_on_where_it_was(start: Start) -> None:
    """The second pull begins with what the first had."""
    clock = ManualClock()
    async with start(clock, pull_s=10) as client:
        async with client.http.stream("POST", "/api/pull", json={"model": "llama3.2:1b"}) as reply:
            lines = reply.aiter_lines()
            while "completed" not in await anext(lines):
                await until(lambda: clock._sleepers, "a step of the download")
                clock.advance(2)
        again = asyncio.create_task(client.lines("/api/pull", model="llama3.2:1b"))
        await pass_time(clock, again)
        lines_again = await again
        assert lines_again[1]["completed"] > 0
        assert lines_again[-1] == {"status": "success"}


@pytest.mark.parametrize("stream", [True, False])
async def test_an_unknown_model_is_refused_as_by_the_registry(client: Client, stream: bool) -> None:
    """200 and an error line when streaming, 500 when not."""
    reply = await client.post("/api/pull", model="nowhere:1b", stream=stream)
    error = {"error": "pull model manifest: file does not exist"}
    if stream:
        assert reply.status_code == 200
        assert [json.loads(line) for line in reply.text.splitlines()] == [{"status": "pulling manifest"}, error]
    else:
        assert (reply.status_code, reply.json()) == (500, error)


async def test_a_registry_file_adds_and_forbids(start: Start, tmp_path: Path) -> None:
    """Models of one's own, like others or not; one that fails half way; one that is refused."""
    file = tmp_path / "registry.json"
    models: list[dict[str, Any]] = [
        {"name": "own:1b", "parameters": 10**9, "size": 700_000_000, "window": 8192},
        {"name": "twin:3b", "like": "llama3.2:3b", "size": 2_019_377_377},
        {"name": "late:1b", "fails_at": 10},
        {"name": "gone:1b", "error": "pull model manifest: 410: no longer here"},
    ]
    file.write_text(json.dumps({"models": models}))
    async with start(registry=file) as client:
        assert (await client.lines("/api/pull", model="own:1b"))[-1] == {"status": "success"}
        await client.lines("/api/pull", model="twin:3b")
        rows = {row["name"]: row for row in (await client.http.get("/api/tags")).json()["models"]}
        assert rows["twin:3b"]["digest"] != rows[CHAT_MODEL]["digest"]
        assert "error" in (await client.lines("/api/pull", model="late:1b"))[-1]
        assert (await client.lines("/api/pull", model="late:1b"))[-1] == {"status": "success"}
        assert (await client.lines("/api/pull", model="gone:1b"))[-1]["error"].endswith("no longer here")
    file.write_text('{"models": [{"name": "x", "colour": "red"}]}')
    with pytest.raises(OptionError, match="registry file"):
        async with start(registry=file):
            pass


async def test_a_store_in_a_folder_outlives_its_daemon(start: Start, tmp_path: Path) -> None:
    """Models, adapters and blobs are there again, with the digests they had; what was deleted is not."""
    async with start(store=tmp_path) as client:
        digest = await _upload(client, _adapter(3072))
        await client.lines("/api/create", model="robin", **{"from": CHAT_MODEL, "adapters": {"a.gguf": digest}})
        await client.lines("/api/create", model="gone", **{"from": CHAT_MODEL})
        await client.http.request("DELETE", "/api/delete", json={"model": "gone"})
        before = {model.name.display: model.manifest.digest for model in client.emulator.daemon.all()}
        shown = (await client.post("/api/show", model="robin")).json()
    async with start(store=tmp_path, models=()) as client:
        assert {model.name.display: model.manifest.digest for model in client.emulator.daemon.all()} == before
        again = (await client.post("/api/show", model="robin")).json()
        for part in (shown, again):
            part.pop("modified_at")
        assert again == shown
        await client.chat(model="robin")
