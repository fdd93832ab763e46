"""A decision from a model: asked in the mode that suits the model, parsed, and repaired at most twice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from batos.errors import AnswerCut, AnswerUnreadable, ContextOverflow, DecisionInvalid
from batos.inference.decisions.schema import Decision
from batos.inference.decisions.shapes import CHARS_PER_TOKEN
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.inference.session import Session, Step

M = TypeVar("M", bound=BaseModel)
Messages: TypeAlias = tuple[dict[str, str], ...]

REPAIRS = 2
#: Tokens that free reasoning may take before the constrained answer of mode `two_phase`.
REASONING_TOKENS = 384
#: Tokens of the window that a longer answer leaves free.
SPARE = 8
#: The least growth of a limit that makes a second try worth its price, and the margin over the measured density.
LEAST_GAIN, DENSER = 1.25, 1.2


class Composer(Protocol):
    """Composes a call's messages and the messages of its repairs: each method returns the given messages and
    some more.
    """

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
    """A decision to be made: the session, the `request` without its messages, and the composer of these."""

    session: Session
    request: ChatRequest
    decision: Decision[M]
    mode: str
    step: Step
    composer: Composer


async def decide(deciding: Deciding[M], messages: Messages) -> tuple[M, str]:
    """Return the decision and its text.

    Raises DecisionInvalid after the last repair, AnswerCut where the window has no room for it, and what the bridge
    raises. A repair that does not fit the window any more is none: the reply's own fault is told.
    """
    if deciding.mode == "two_phase":
        messages = await _reason_first(deciding, messages)
    step, invalid = deciding.step, None
    for attempt in range(REPAIRS + 1):
        try:
            answer = await whole(deciding.session, replace(deciding.request, messages=messages), step)
        except ContextOverflow:
            if invalid is None:
                raise
            raise invalid from None
        try:
            return deciding.decision.parse(answer.text), answer.text
        except DecisionInvalid as error:
            deciding.session.waste(step.path)
            if attempt == REPAIRS:
                raise
            invalid = error
            messages = deciding.composer.repair(messages, answer.text, error.message)
            step = deciding.step.again(f"repair{attempt + 1}")
    raise AssertionError("the last attempt returns or raises")


async def whole(session: Session, request: ChatRequest, step: Step) -> Answer:
    """Return an answer that was not cut: a cut one is asked for again with more room, as far as the window has it.

    The cut one is not shown to the model: small ones go on where it stopped. AnswerCut where there is no more room.
    """
    window, place, more = int(request.options["num_ctx"]), step, 0
    while True:
        limit = int(request.options["num_predict"])
        try:
            answer = await session.think(request, place)
        except AnswerUnreadable:
            # Mostly an answer that was cut within a letter: no counts came with it.
            if more or 2 * limit > window // 2:
                raise
            more, place = more + 1, step.again(f"more{more + 1}")
            request = replace(request, options={**request.options, "num_predict": 2 * limit})
            continue
        if answer.done_reason != "length":
            return answer
        session.waste(place.path)
        room, needed = window - answer.prompt_tokens - SPARE, larger_limit(limit, answer)
        if room < limit * LEAST_GAIN:
            raise AnswerCut(answer.prompt_tokens, answer.answer_tokens, window, needed)
        request = replace(request, options={**request.options, "num_predict": min(room, needed)})
        more += 1
        place = step.again(f"more{more}")


def larger_limit(limit: int, answer: Answer) -> int:
    """Return the next limit for an answer that was cut: twice the last, or what its letters cost if they are dense."""
    dense = answer.answer_tokens / max(1, len(answer.text)) * CHARS_PER_TOKEN
    return math.ceil(limit * max(2.0, DENSER * dense))


async def _reason_first(deciding: Deciding[M], messages: Messages) -> Messages:
    """Free reasoning first: small models lose much when they reason inside a grammar (arXiv 2601.07525)."""
    free = deciding.composer.reason(messages)
    options = {**deciding.request.options, "num_predict": REASONING_TOKENS}
    request = replace(deciding.request, messages=free, options=options, schema=None)
    reasoning = await deciding.session.think(request, Step(f"{deciding.step.path}/reason"))
    return deciding.composer.conclude(free, reasoning.text)
