"""The embedder is asked on the processor, with the ends of long texts, and every failure is a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.waiting import HANG

from batos.inference.ollama.bridge import Bridge, Embedding
from batos.memory.embedder import HEAD, TAIL, Embedder, Unembedded, clip
from batos.protocol.errors import OllamaUnreachable
from ollama_emulator.emulator import Emulator, Options

MODEL = "all-minilm:latest"


class Hanging:
    """An embedder that never answers."""

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, Any] | None = None,
        keep_alive: float | str | None = None,
    ) -> Embedding:
        """Waits."""
        await asyncio.Event().wait()
        raise AssertionError


async def test_it_is_asked_on_the_processor_with_a_number_of_threads() -> None:
    """No layer goes to the card, and a runner on the processor leaves cores free."""
    emulator = Emulator(Options(models=(MODEL,)))
    async with emulator.serving() as url, Bridge(url, cpu_threads=2) as bridge:
        vectors = await Embedder(bridge, MODEL, "d").vectors(["a lamp", "a wick"])
    assert [len(vector) for vector in vectors] == [384, 384]
    asked = [each["body"] for each in emulator.requests if each["path"] == "/api/embed"]
    assert [body["options"]["num_gpu"] for body in asked] == [0]
    assert [body["options"]["num_thread"] for body in asked] == [2]


async def test_a_text_beyond_the_window_is_tried_once_more_shorter() -> None:
    """What the daemon refuses as too long is asked again with less of it."""
    emulator = Emulator(Options(models=(MODEL,)))
    async with emulator.serving() as url, Bridge(url) as bridge:
        vectors = await Embedder(bridge, MODEL, "d").vectors(["灯" * 5_000])
    assert len(vectors[0]) == 384
    assert [each["status"] for each in emulator.requests if each["path"] == "/api/embed"] == [400, 200]


async def test_an_emulator_may_be_given_an_embedder() -> None:
    """Its vectors go over the wire as a model's would."""
    vector = [0.6, 0.8, *([0.0] * 382)]
    emulator = Emulator(Options(models=(MODEL,), embedder=lambda text: vector))
    async with emulator.serving() as url, Bridge(url) as bridge:
        assert await Embedder(bridge, MODEL, "d").vectors(["a lamp"]) == [vector]


async def test_every_failure_is_a_reason() -> None:
    """A model that is missing, a daemon that is away, an answer that does not come."""
    async with Emulator().serving() as url, Bridge(url) as bridge:
        with pytest.raises(Unembedded, match="absent"):
            await Embedder(bridge, "absent:latest", "d").vectors(["a lamp"])
    async with Bridge(url) as bridge:
        with pytest.raises(Unembedded) as raised:
            await Embedder(bridge, MODEL, "d").vector("a lamp", HANG)
        assert isinstance(raised.value.__cause__, OllamaUnreachable)
    with pytest.raises(Unembedded, match=r"within 0\.01 s"):
        await Embedder(Hanging(), MODEL, "d").vector("a lamp", 0.01)  # any pace: it is to run out


def test_of_a_long_text_the_ends_are_kept() -> None:
    """A short text is as it is, nothing is a blank, a long one loses its middle."""
    assert clip("a lamp") == "a lamp"
    assert clip("") == " "
    assert clip(f"{'a' * HEAD}{'b' * 9_000}{'c' * TAIL}") == f"{'a' * HEAD} {'c' * TAIL}"
    assert len(clip("x" * 9_000, 4)) < HEAD
