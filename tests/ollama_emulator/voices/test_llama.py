"""The engine: prompts as they are, slots, the prompt cache, ends, and no door to the world."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.ollama_emulator.voices.real_models import MODELS

from model_files import gguf
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.library import cards
from ollama_emulator.tokenizers import vocabulary
from ollama_emulator.voices import gguf_model, llama
from ollama_emulator.voices.llama import EngineSettings, LlamaEngine

TINY = MODELS / "tiny-a.gguf"
pytestmark = pytest.mark.real
PROMPT = "<|im_start|>user\nIs 1911 the year? Ça va, 潮汐!\n\n  Two  blanks.<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
async def engine() -> AsyncIterator[LlamaEngine]:
    """SmolLM2 with two slots."""
    engine = await LlamaEngine.load(EngineSettings(gguf_model.find("smollm2"), 512, slots=2))
    yield engine
    await engine.close()


async def _last(engine: LlamaEngine, prompt: object, many: int = 2) -> dict[str, Any]:
    """The last chunk of a completion, which has the counts."""
    asked = {"prompt": prompt, "n_predict": many, "temperature": 0, "stream": True, "cache_prompt": True}
    async with aclosing(engine.complete(asked)) as chunks:
        return [chunk async for chunk in chunks][-1]


async def test_prompts_are_counted_as_llama_cpp_counts_them(engine: LlamaEngine) -> None:
    """The ids that the emulator gives are those that llama.cpp makes of the text, special tokens too: as many, and
    after the ids the text is in its cache.
    """
    path = gguf_model.find("smollm2")
    card = await asyncio.to_thread(lambda: cards.card_of_header(gguf.read(path)))
    ids = await asyncio.to_thread(lambda: vocabulary.vocabulary_of("smollm2", card).encode(PROMPT, whole=True))
    first = await _last(engine, list(ids))
    again = await _last(engine, PROMPT)
    assert first["usage"]["prompt_tokens"] == again["usage"]["prompt_tokens"] == len(ids)
    assert again["timings"]["cache_n"] == len(ids) - 1


async def test_slots_answer_beside_each_other(engine: LlamaEngine) -> None:
    """Two answers run at once, so that the shorter one ends first though it began last."""
    ended: list[int] = []

    async def answer(many: int) -> None:
        await _last(engine, f"Count: {many}", many)
        ended.append(many)

    await asyncio.gather(answer(60), answer(2))
    assert ended == [2, 60]


async def test_a_closed_answer_stops(engine: LlamaEngine) -> None:
    """Closing the generator ends an answer that has no end, and its slot is free."""
    asked = {"prompt": "One, two,", "n_predict": -1, "ignore_eos": True, "stream": True}
    for _ in range(3):
        async with aclosing(engine.complete(asked)) as chunks:
            async for _chunk in chunks:
                break
    assert (await _last(engine, "One, two,"))["usage"]["completion_tokens"] == 2


def test_no_socket_listens() -> None:
    """The library's own HTTP server has a Unix socket that is unlinked, and no port."""
    server = llama.open_server(EngineSettings(TINY, 256))
    address = server.listening_address
    del server
    assert "llama.sock" in address
    assert not Path(address.partition("://")[2]).exists()


async def test_signals_stay_those_of_the_program() -> None:
    """Loading a model takes no signal away from the program."""
    before = signal.getsignal(signal.SIGTERM)
    engine = await LlamaEngine.load(EngineSettings(TINY, 256))
    assert signal.getsignal(signal.SIGTERM) == before
    await engine.close()


async def test_a_broken_file_is_the_daemons_error(tmp_path: Path) -> None:
    """A file that llama.cpp cannot load ends the load as with the daemon; a closed engine answers nothing."""
    path = tmp_path / "half.gguf"
    await asyncio.to_thread(lambda: path.write_bytes(TINY.read_bytes()[:5000]))
    with pytest.raises(ApiError, match="exit status 1"):
        await LlamaEngine.load(EngineSettings(path, 256))
    engine = await LlamaEngine.load(EngineSettings(TINY, 256))
    await engine.close()
    with pytest.raises((ApiError, RuntimeError)):
        await engine.embed("a")


def test_half_of_the_cores_think() -> None:
    """At least one thread, at most half of the cores."""
    assert llama.default_threads() >= 1
