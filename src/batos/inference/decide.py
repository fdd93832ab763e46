"""A decision from a model: asked in the mode that suits it, parsed, and repaired at most twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel

from batos.errors import DecisionInvalid
from batos.inference.bridge import ChatRequest
from batos.inference.schema import Decision
from batos.inference.session import Session, Step

M = TypeVar("M", bound=BaseModel)

REPAIRS = 2
#: Tokens that free reasoning may take before the constrained answer of mode `two_phase`.
REASONING_TOKENS = 384
_REASON = "First think it through in a few sentences of plain text. The answer itself comes after that."
_THEN = "Now give the answer."


@dataclass(frozen=True, slots=True)
class Deciding(Generic[M]):
    """What is asked of whom: `request` lacks only its messages."""

    session: Session
    request: ChatRequest
    decision: Decision[M]
    mode: str
    step: Step


async def decide(deciding: Deciding[M], messages: tuple[dict[str, str], ...]) -> tuple[M, str]:
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
            messages = (*messages, *repair(text, error))
            step = Step(f"{deciding.step.path}/repair{attempt + 1}", deciding.step.on_token)
    raise AssertionError("the last attempt returns or raises")


def repair(text: str, error: DecisionInvalid) -> tuple[dict[str, str], ...]:
    """What is appended after a reply that is no valid decision."""
    return (
        {"role": "assistant", "content": text or "{}"},
        {"role": "user", "content": f"{error.message} Answer again."},
    )


async def _reasoned(deciding: Deciding[M], messages: tuple[dict[str, str], ...]) -> tuple[dict[str, str], ...]:
    """Free reasoning first: small models lose much when they must reason inside a grammar (facts in docs/why.md)."""
    free = (*messages, {"role": "user", "content": _REASON})
    options = {**deciding.request.options, "num_predict": REASONING_TOKENS}
    request = replace(deciding.request, messages=free, options=options, schema=None)
    reasoning = await deciding.session.think(request, Step(f"{deciding.step.path}/reason"))
    return (*free, {"role": "assistant", "content": reasoning.text}, {"role": "user", "content": _THEN})
