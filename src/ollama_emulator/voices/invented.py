"""The invented voice: answers cut from the prompt, at the speed of the simulated machine, and vectors by hashing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from ollama_emulator.clocks import Clock
from ollama_emulator.machine.pacing import Pace
from ollama_emulator.machine.runners import ModelRunner
from ollama_emulator.prompting import prompts
from ollama_emulator.speech import embedding
from ollama_emulator.voices.voice import Saying, SpeechOrder

_IDLE_RATE = 50.0  # tokens a second of an endless answer if no speed is set
_Step = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class InventedVoice:
    """Answers by rule; `rate` is in tokens a second (0: no delay), `embedder` replaces the hashing of texts."""

    clock: Clock
    rate: float = 0.0
    embedder: Callable[[str], list[float]] | None = None

    async def say(self, turn: SpeechOrder) -> AsyncGenerator[Saying, None]:
        """Yield the whole answer at once if there is no speed, else a piece at a time when it is due."""
        plan = prompts.compose(turn.ask, turn.fields, turn.prompt, turn.manner)
        pace = Pace(self.clock, self.rate)
        if pace.rate:
            await pace.read(turn.runner.prefixes.count_unread(turn.prompt.text, plan.prompt_tokens))
        elif plan.endless:
            pace.rate = _IDLE_RATE
            await pace.read(0)
        if not pace.rate:
            yield Saying(plan, plan.pieces, plan.thinking)
            return
        # thinking comes first; an endless answer repeats its pieces
        steps: list[_Step] = [*(((one,), ()) for one in plan.thinking), *(((), (one,)) for one in plan.pieces)]
        while True:
            for thought, piece in steps or [((), (" ",) if plan.endless else ())]:
                await pace.say()
                yield Saying(plan, piece, thought, pace.read_ns)
            if not plan.endless:
                return
            steps = [
                *(((one,), ()) for one in plan.thinking),
                *(((), (one,)) for one in prompts.space_repeats(plan.pieces)),
            ]

    async def embed(self, runner: ModelRunner, text: str) -> list[float]:
        """Return a vector by hashing, or by the embedder of the options, which is called in a thread."""
        if self.embedder is not None:
            return await asyncio.to_thread(self.embedder, text)
        return embedding.embed(text, runner.ask.model.card.width, runner.ask.model.base)
