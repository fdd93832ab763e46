"""A prompt that the daemon cut in silence is an error, and what was not cut never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.conftest import PATIENT

from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.chat import Answer, ChatRequest, least_tokens, refuse_cut
from batos.protocol.errors import ContextOverflow
from ollama_emulator.emulator import Emulator, Options

MODEL = "llama3.1:8b-instruct-q4_K_M"
LONG = ({"role": "user", "content": "The breach was closed with granite. " * 200},)


async def test_a_daemon_that_cuts_a_prompt_in_silence_is_told() -> None:
    """It read 256 tokens of more than 500."""
    emulator = Emulator(Options(models=(MODEL,)))
    async with emulator.serving() as url, Bridge(url, deadlines=PATIENT) as bridge:
        emulator.faults.add({"do": "truncate", "tokens": 256})
        with pytest.raises(ContextOverflow, match="read 256 tokens of a prompt that has at least 600"):
            await bridge.think(ChatRequest(MODEL, LONG, {"num_ctx": 4096, "num_predict": 8}))


async def test_a_whole_prompt_is_answered() -> None:
    """The same prompt, read whole."""
    async with Emulator(Options(models=(MODEL,))).serving() as url, Bridge(url, deadlines=PATIENT) as bridge:
        answer = await bridge.think(ChatRequest(MODEL, LONG, {"num_ctx": 4096, "num_predict": 8}))
        assert answer.prompt_tokens >= least_tokens(LONG)


@given(st.text("a1 .\n中", max_size=200))
def test_the_least_is_no_more_than_half_the_words(text: str) -> None:
    """Signs alone are no words: a row of them may be one token."""
    assert least_tokens([{"role": "user", "content": text}]) <= (len(text.split()) + 1) // 2
    assert least_tokens([{"role": "user", "content": ". - ... ="}]) == 0


@given(st.lists(st.text("a1 .\n\t\x1c\x85中", max_size=60), max_size=4), st.integers(0, 80))
def test_a_count_below_the_least_is_refused_and_no_other(texts: list[str], read: int) -> None:
    """A daemon that counts nothing has said nothing."""
    told = tuple({"role": "user", "content": text} for text in texts)
    request, answer = ChatRequest(MODEL, told, {}), Answer("", "", "stop", read, 1, 0.0, 0.0)
    if 0 < read < least_tokens(told):
        with pytest.raises(ContextOverflow):
            refuse_cut(request, answer)
    else:
        assert refuse_cut(request, answer) is answer
