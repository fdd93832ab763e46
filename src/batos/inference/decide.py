"""A decision from a model: asked in the mode that suits it, parsed, and repaired at most twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from batos.errors import DecisionInvalid
from batos.inference.bridge import ChatRequest
from batos.inference.schema import Decision
from batos.inference.session import Session, Step

M = TypeVar("M", bound=BaseModel)
Messages: TypeAlias = tuple[dict[str, str], ...]

REPAIRS = 2
#: Tokens that free reasoning may take before the constrained answer of mode `two_phase`.
REASONING_TOKENS = 384


class Composer(Protocol):
    """Who composes a call's messages also says how they go on; each answers the messages given, and some more."""

    def reason(self, messages: Messages) -> Messages:
        """Ask for free reasoning first."""
        ...

    def conclude(self, messages: Messages, reasoning: str) -> Messages:
        """Ask for the answer, after the reasoning."""
        ...

    def repair(self, messages: Messages, text: str, why: str) -> Messages:
        """Ask again, after a reply that is no valid decision."""
        ...


@dataclass(frozen=True, slots=True)
class Deciding(Generic[M]):
    """What is asked of whom: `request` lacks only its messages."""

    session: Session
    request: ChatRequest
    decision: Decision[M]
    mode: str
    step: Step
    composer: Composer


async def decide(deciding: Deciding[M], messages: Messages) -> tuple[M, str]:
    """The decision and its text; raises DecisionInvalid after the last repair, and what the bridge raises."""
    if deciding.mode == "two_phase":
        messages = await _reasoned(deciding, messages)
    text, step = "", deciding.step
    for attempt in range(REPAIRS + 1):
        answer = await deciding.session.think(replace(deciding.request, messages=messages), step)
        text = answer.text
        try:
            return deciding.decision.parse(text), text
        except DecisionInvalid as error:
            deciding.session.waste(step.path)
            if attempt == REPAIRS:
                raise
            messages = deciding.composer.repair(messages, text, error.message)
            step = Step(f"{deciding.step.path}/repair{attempt + 1}", deciding.step.on_token)
    raise AssertionError("the last attempt returns or raises")


async def _reasoned(deciding: Deciding[M], messages: Messages) -> Messages:
    """Free reasoning first: small models lose much when they reason inside a grammar (arXiv 2601.07525)."""
    free = deciding.composer.reason(messages)
    options = {**deciding.request.options, "num_predict": REASONING_TOKENS}
    request = replace(deciding.request, messages=free, options=options, schema=None)
    reasoning = await deciding.session.think(request, Step(f"{deciding.step.path}/reason"))
    return deciding.composer.conclude(free, reasoning.text)
