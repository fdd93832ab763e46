"""The protocol of a voice: the answers and vectors that a runner gives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ollama_emulator.machine.runners import Ask, ModelRunner
from ollama_emulator.prompting.prompts import AnswerPlan, Manner
from ollama_emulator.prompting.rendering import Prompt
from ollama_emulator.requests import Fields


@dataclass(frozen=True, slots=True)
class SpeechOrder:
    """A request for an answer that has its runner and a slot of it."""

    ask: Ask
    fields: Fields
    prompt: Prompt
    manner: Manner
    runner: ModelRunner


@dataclass(frozen=True, slots=True)
class Saying:
    """A step of an answer: the pieces that are due now, and the plan of the answer as far as it is known.

    `read_ns` is the time that the prompt took, `said_ns` that of the answer; 0 leaves both to the caller's clock.
    `logprobs` has the entries of the pieces in the daemon's form; None leaves them to be invented.
    """

    plan: AnswerPlan
    pieces: Sequence[str] = ()
    thinking: Sequence[str] = ()
    read_ns: int = 0
    said_ns: int = 0
    logprobs: Sequence[Mapping[str, Any]] | None = None


class Voice(Protocol):
    """A source of answers. The last step of an answer has the whole plan."""

    def say(self, turn: SpeechOrder) -> AsyncGenerator[Saying, None]:
        """Yield the steps of an answer as they are due. Raises: ApiError: the request is refused."""
        ...

    async def embed(self, runner: ModelRunner, text: str) -> list[float]:
        """Return the vector of a text. Raises: ApiError: 500, the runner cannot make it."""
        ...
