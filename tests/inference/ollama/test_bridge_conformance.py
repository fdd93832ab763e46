"""Every bridge: the one to a daemon and the one without give the same answers, models and errors."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.inference.conftest import PATIENT

from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.protocol.errors import ModelMissing
from batos.testing import ScriptedBridge, shipped_models
from ollama_emulator.emulator import Emulator, Options

AnyBridge: TypeAlias = Bridge | ScriptedBridge
MODEL, EMBEDDER = shipped_models()
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"choice": {"enum": ["left", "right"]}, "why": {"type": "string"}},
    "required": ["choice", "why"],
}


def asked(**options: Any) -> ChatRequest:
    """A plain request of the model."""
    messages = ({"role": "user", "content": "Which way leads to the harbour?"},)
    return ChatRequest(MODEL, messages, {"num_ctx": 4096, **options})


class Bridges(ABC):
    """What every bridge does."""

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[AnyBridge]:
        """A bridge to what has a model and an embedder."""

    async def test_an_answer_is_the_tokens_that_were_heard(self) -> None:
        """It ends by itself, and its prompt and its tokens are counted."""
        pieces: list[str] = []
        async with self.opened() as bridge:
            answer = await bridge.think(asked(), pieces.append)
        assert answer.text == "".join(pieces) != ""
        assert answer.done_reason == "stop"
        assert answer.prompt_tokens >= 1 <= answer.answer_tokens

    async def test_an_answer_that_nobody_hears_is_whole(self) -> None:
        """In one piece as well as in many."""
        async with self.opened() as bridge:
            assert (await bridge.think(asked(seed=5), stream=False)).text

    async def test_an_answer_is_no_longer_than_it_may_be(self) -> None:
        """It says that it was cut."""
        async with self.opened() as bridge:
            answer = await bridge.think(asked(num_predict=3))
        assert (answer.done_reason, answer.answer_tokens) == ("length", 3)

    async def test_an_answer_has_the_shape_that_was_asked_for(self) -> None:
        """It is JSON of the schema."""
        request = asked()
        async with self.opened() as bridge:
            answer = await bridge.think(ChatRequest(request.model, request.messages, request.options, SCHEMA))
        found = json.loads(answer.text)
        assert found["choice"] in SCHEMA["properties"]["choice"]["enum"]
        assert found.keys() == {"choice", "why"}

    async def test_each_text_has_its_vector(self) -> None:
        """In the order of the texts, the same for the same text, all of one length."""
        async with self.opened() as bridge:
            first = await bridge.embed(EMBEDDER, ["the sea", "a pier", "the sea"])
            again = await bridge.embed(EMBEDDER, ["a pier"])
        sea, pier, same = first.vectors
        assert sea == same != pier == again.vectors[0]
        assert len(sea) == len(pier) > 0
        assert first.prompt_tokens >= 3

    async def test_what_is_made_is_listed_until_it_is_deleted(self) -> None:
        """A made model has a card and a digest, and nothing of it is left behind."""
        async with self.opened() as bridge:
            async for _ in bridge.create("made:1", from_=MODEL, system="You are small.", parameters={"num_ctx": 512}):
                pass
            row = next(row for row in await bridge.list() if row.name == "made:1")
            assert "completion" in (await bridge.show("made:1")).capabilities
            await bridge.delete("made:1")
            assert {row.name for row in await bridge.list()} == {MODEL, EMBEDDER}
        assert len(row.digest) == 64

    async def test_what_is_pulled_is_listed_when_its_progress_says_success(self) -> None:
        """Once, however often it is pulled."""
        async with self.opened() as bridge:
            for _ in range(2):
                progress = [step async for step in bridge.pull(EMBEDDER)]
                assert progress[-1].status == "success"
            assert [row.name for row in await bridge.list()].count(EMBEDDER) == 1

    async def test_a_model_that_is_not_there_is_missed(self) -> None:
        """It has no card, and it cannot be deleted."""
        async with self.opened() as bridge:
            with pytest.raises(ModelMissing):
                await bridge.show("absent:1")
            with pytest.raises(ModelMissing):
                await bridge.delete("absent:1")

    async def test_a_blob_is_known_by_its_digest(self, tmp_path: Path) -> None:
        """An upload says the SHA-256 of the bytes, also the second time."""
        path = tmp_path / "blob"
        path.write_bytes(b"GGUF" + bytes(100))
        digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        async with self.opened() as bridge:
            assert [await bridge.upload_blob(path) for _ in range(2)] == [digest, digest]

    async def test_nothing_is_in_memory_after_it_was_unloaded(self) -> None:
        """Whether or not it was there."""
        async with self.opened() as bridge:
            for _ in range(2):
                assert await bridge.unload(MODEL)
            assert list(await bridge.ps()) == []

    async def test_it_speaks_with_a_version(self) -> None:
        """Three numbers, and closing it twice is harmless."""
        async with self.opened() as bridge:
            assert len((await bridge.version()).split(".")) >= 3
            await bridge.aclose()


class TestBridge(Bridges):
    """The one to a daemon, an emulated one."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[AnyBridge]:
        """A bridge over a socket."""
        async with (
            Emulator(Options(models=(MODEL, EMBEDDER))).serving() as url,
            Bridge(url, deadlines=PATIENT) as bridge,
        ):
            yield bridge


class TestScriptedBridge(Bridges):
    """The one without a daemon."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[AnyBridge]:
        """A bridge with two models."""
        yield ScriptedBridge(models=(MODEL, EMBEDDER), vectors=lambda text: [float(len(text)), 1.0])
