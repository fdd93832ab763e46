"""The invented voice keeps what every voice keeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ollama_emulator.clients import started
from tests.ollama_emulator.voices.conformance import VoiceConformance, door, emulator_process

__all__ = ["door"]


class TestInventedVoice(VoiceConformance):
    """Words that are cut from the prompt."""

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls) -> Iterator[str]:
        """An emulator with two slots."""
        with emulator_process("--model", "llama3.2:3b", "--parallel", "2") as url:
            yield url

    @pytest.fixture
    def model(self) -> str:
        """A model of the simulated registry."""
        return "llama3.2:3b"


async def test_an_endless_answer_has_a_blank_between_its_repeats() -> None:
    """So that it reads as one that goes on, and not as one that was written twice."""
    async with started(endless=True) as client:
        said = (await client.chat(options={"num_predict": 200}))["message"]["content"]
        assert said.startswith("[emulator, not a model] What is water? [emulator, not a model] What is water? [")
