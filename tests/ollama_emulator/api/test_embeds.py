"""What of a text is embedded: windows, batches and the words of what does not fit, as the daemon counts them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
from tests.ollama_emulator.clients import Client, started
from tests.ollama_emulator.recordings import MODELS

TOO_LONG = "the input length exceeds the context length"
NOTHING_LEFT = "input after truncation exceeds maximum context length"
NO_SHORTER = "input exceeds maximum context length and cannot be truncated further"


@pytest.fixture
async def daemon() -> AsyncIterator[Client]:
    """A daemon with the recorded embedder, which was trained for 256 tokens; `m` is one of them."""
    async with started(models=(), vram=0) as client:
        data = (MODELS / "tiny-embed.gguf").read_bytes()
        digest = "sha256:" + sha256(data).hexdigest()
        await client.http.post(f"/api/blobs/{digest}", content=data)
        await client.lines("/api/create", model="embedder", files={"tiny-embed.gguf": digest})
        yield client


async def _embed(client: Client, many: int, options: dict[str, Any], **fields: Any) -> httpx.Response:
    return await client.post("/api/embed", model="embedder", input="m " * many, options=options, **fields)


@pytest.mark.parametrize(
    ("many", "options", "read"),
    [
        (254, {}, 256),
        (255, {}, 256),
        (7, {"num_ctx": 3}, 3),
        (7, {"num_ctx": 5}, 5),
        (100, {"num_ctx": 64}, 64),
        (100, {"num_batch": 64}, 64),
        (300, {"num_batch": 64}, 64),
        (300, {"num_ctx": 128, "num_batch": 64}, 64),
        (100, {"num_batch": 0}, 102),
        (300, {"num_ctx": 4096}, 256),
    ],
)
async def test_a_text_is_cut_to_the_window_and_to_the_batch(
    daemon: Client, many: int, options: dict[str, Any], read: int
) -> None:
    """With its first and its last token it fills them; the count tells of nothing else."""
    reply = await _embed(daemon, many, options)
    assert reply.json()["prompt_eval_count"] == read


@pytest.mark.parametrize(
    ("many", "options", "truncate", "told"),
    [
        (255, {}, False, TOO_LONG),
        (100, {"num_batch": 64}, False, TOO_LONG),
        (1, {"num_ctx": 2}, True, NOTHING_LEFT),
        (1, {"num_ctx": 1}, False, NOTHING_LEFT),
        (100, {"num_batch": 2}, True, NOTHING_LEFT),
        (7, {"num_ctx": 0}, True, NO_SHORTER),
        (7, {"num_ctx": -1}, False, TOO_LONG),
    ],
)
async def test_what_does_not_fit_and_may_or_can_not_be_cut_is_refused(
    daemon: Client, many: int, options: dict[str, Any], truncate: bool, told: str
) -> None:
    """A window of no size is the trained one to whoever cuts, and the least one to the runner."""
    reply = await _embed(daemon, many, options, truncate=truncate)
    assert (reply.status_code, reply.json()["error"]) == (400, told)


async def test_a_name_is_looked_at_before_the_input_and_a_model_behind_it(daemon: Client) -> None:
    """As the daemon does: no name, an impossible one, an input that is none, a model that is not there."""
    for model, status in (("", 404), ("a b", 400), ("nowhere", 400)):
        reply = await daemon.post("/api/embed", model=model, input=5)
        assert (reply.status_code, "input type" in reply.text) == (status, model == "nowhere")
    assert (await daemon.post("/api/embed", model="nowhere", input="x")).status_code == 404


async def test_the_older_route_asks_the_runner_alone(daemon: Client) -> None:
    """It cuts nothing and looks at no window, and what the runner does not take is a 500."""
    for many, options, status in ((1, {"num_ctx": 2}, 200), (3, {"num_ctx": 2}, 500), (254, {}, 200), (255, {}, 500)):
        reply = await daemon.post("/api/embeddings", model="embedder", prompt="m " * many, options=options)
        assert reply.status_code == status
        assert status == 200 or reply.json()["error"] == TOO_LONG
