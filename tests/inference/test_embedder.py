"""The embedder is asked on the processor, with the ends of long texts, and every failure is a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG

from batos.config import Settings
from batos.events import Events
from batos.inference.embedder import HEAD, TAIL, Embedder, EmbedderFinder, Unembedded, clip
from batos.inference.ollama.bridge import Bridge, Embedding
from batos.protocol.errors import OllamaUnreachable
from batos.testing import ScriptedBridge, scripted_uvm, shipped_models
from batos.uvm import Seams, open_uvm
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


async def test_the_image_names_the_embedder_without_a_look_at_the_codex(tmp_path: Path) -> None:
    """After a genesis the codex's files are not read again: the image has the name, the daemon the digest."""
    bridge = ScriptedBridge()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        found = await EmbedderFinder(uvm.image, bridge, _never).find()
        row = bridge.rows[found.model]
        assert (found.model, found.digest) == (shipped_models()[1], row.digest)
        await bridge.delete(found.model)
        with pytest.raises(Unembedded, match="no embedding model"):
            await EmbedderFinder(uvm.image, bridge, _never).find()


async def test_an_image_before_its_genesis_takes_the_codex_up_first(tmp_path: Path) -> None:
    """Where the image names nothing, the codex is brought into it, and its embedder found."""
    bridge = ScriptedBridge()
    settings = Settings(home=tmp_path, user="tester", image="memory://image")
    async with open_uvm(settings, Events(log=False), Seams(bridge=bridge)) as uvm:
        found = await EmbedderFinder(uvm.image, bridge, uvm.readiness.ready).find()
    assert found.model == shipped_models()[1]


async def test_a_daemon_that_is_away_is_a_reason(tmp_path: Path) -> None:
    """Whoever asks is told why there is no vector, and nothing ends."""
    async with scripted_uvm(tmp_path) as uvm, Bridge("http://127.0.0.1:9") as nobody:
        with pytest.raises(Unembedded, match="Ollama does not answer"):
            await EmbedderFinder(uvm.image, nobody, _never).find()


async def _never() -> None:
    raise AssertionError
