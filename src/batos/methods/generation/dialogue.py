"""The dialogue with the coder: asked for a method, told what is wrong with it, at most three times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from batos.errors import (
    AnswerCut,
    ContextOverflow,
    CovenantViolation,
    GenerationFailed,
    MethodFailed,
    Refused,
    Runaway,
    TimedOut,
)
from batos.events import Events
from batos.inference.decisions.decide import whole
from batos.inference.decisions.schema import Decision
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Session, Step
from batos.methods.generation import coder_prompt
from batos.methods.generation.coder_reply import REPLY
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import Judged
from batos.minds import prompt
from batos.minds.prompt import Message
from batos.minds.trace import ratio

#: How often a coder is told what is wrong before it is given up.
REPAIRS: Final = 3


class Tries(Protocol):
    """Who tries a reply."""

    async def reply(self, text: str) -> Judged:
        """What came of it."""
        ...


@dataclass(slots=True)
class Dialogue:
    """One dialogue: each call is in the journal under its own path, so that one that was cut off is taken up again.

    `begun` are the messages that it began with, if it was begun before: the object may have other slots by now, and
    what was paid for is found only under the very same request.
    """

    wanted: MethodSpec
    session: Session
    trial: Tries
    events: Events
    #: The place of its calls in the journal.
    path: str
    begun: tuple[Message, ...]
    #: The shape that it answers in.
    decision: Decision[Any] = REPLY
    attempts: int = 0
    _repairs: list[tuple[Message, ...]] = field(default_factory=list)

    async def run(self) -> Judged:
        """What passed. CovenantViolation: the guardian still refuses it; GenerationFailed: it still fails otherwise.

        What Ollama raises, and CellMissing, are raised as they are: they say nothing about the method.
        """
        judged = Judged(())
        for attempt in range(REPAIRS + 1):
            self.attempts = attempt + 1
            step = Step(f"{self.path}/attempt{attempt}")
            text, judged = await self._attempted(step)
            if not judged.faults:
                return judged
            self.session.waste(step.path)
            self._repairs.append(coder_prompt.repair(text, judged.faults))
            if attempt < REPAIRS:
                self._told(attempt + 1, judged)
        raise self._given_up(judged)

    async def _attempted(self, step: Step) -> tuple[str, Judged]:
        try:
            text = await self._asked(step)
        except Runaway as error:
            # What it says without end is no reply: it is asked again as after any other that is none.
            return "", Judged((f"The reply is not valid: {error.message}.",))
        except (Refused, TimedOut) as error:
            raise GenerationFailed(
                f"{self._what()} has used up what it may cost: {error.message}",
                remedy="Raise generation_tokens or generation_seconds in batos.toml, or name another coder.",
            ) from error
        return text, await self.trial.reply(text)

    async def _asked(self, step: Step) -> str:
        try:
            return (await whole(self.session, self._request(self._paid(step) or self._fitted()), step)).text
        except (ContextOverflow, AnswerCut) as overflow:
            lighter = self._messages(self._repairs[-1:])
            if len(self._repairs) < 2:
                raise self._too_long(overflow) from overflow
            try:
                return (await whole(self.session, self._request(lighter), step)).text
            except (ContextOverflow, AnswerCut) as again:
                raise self._too_long(again) from again

    def _paid(self, step: Step) -> tuple[Message, ...]:
        """What was asked at this step, if that was answered: what is wrong with a reply may be told otherwise now."""
        for record in self.session.earlier:
            if record.path == step.path and record.state == "done":
                return tuple(record.request["messages"])
        return ()

    def _fitted(self) -> tuple[Message, ...]:
        """All that was said, or with the last attempt alone where there is no room for the others."""
        said = self._messages(self._repairs)
        room = prompt.room(self.wanted.coder.window, self._predicted(), self._measured())
        return said if prompt.size(said) <= room else self._messages(self._repairs[-1:])

    def _messages(self, repairs: Sequence[tuple[Message, ...]]) -> tuple[Message, ...]:
        return (*self.begun, *(message for each in repairs for message in each))

    def _request(self, messages: tuple[Message, ...]) -> ChatRequest:
        coder = self.wanted.coder
        options = {**coder.options, "num_predict": self._predicted()}
        return ChatRequest(coder.model, messages, options, schema=self.decision.format, think=False)

    def _predicted(self) -> int:
        needed = min(self.decision.num_predict, self.wanted.coder.window // 2)
        return max(needed, int(self.wanted.coder.options.get("num_predict", 0)))

    def _measured(self) -> float:
        return ratio(*self.session.measured.get(self.wanted.coder.model, (0, 0)), self.wanted.coder.ratio)

    def _told(self, attempt: int, judged: Judged) -> None:
        first, others = coder_prompt.shorten(judged.faults[0]), len(judged.faults) - 1
        why = f"{first} (and {others} more)" if others else first
        about = {"receiver": self.wanted.name, "selector": self.wanted.selector}
        self.events.emit("method.repair", **about, attempt=attempt, why=why)

    def _given_up(self, judged: Judged) -> MethodFailed:
        said = "; ".join(judged.faults[: coder_prompt.FAULTS])[: 4 * coder_prompt.FAULT]
        if judged.refused:
            return CovenantViolation(
                f"the guardian refuses {self._what()} after {REPAIRS} repairs: {said}", faults=judged.refused
            )
        return GenerationFailed(f"{self._what()} does not pass its checks after {REPAIRS} repairs: {said}")

    def _too_long(self, overflow: ContextOverflow | AnswerCut) -> GenerationFailed:
        return GenerationFailed(
            f"the request for {self._what()} does not fit the coder's window: {overflow.message}",
            remedy="Raise num_ctx in the codex, or shorten the intent.",
        )

    def _what(self) -> str:
        return f"{self.wanted.selector!r} of {self.wanted.name}"
