"""The invented voice keeps what every voice keeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
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
