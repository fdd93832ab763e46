"""The division of a question into sub-queries for the parts: one short request, and the check of its reply.

A capable model is asked for one sub-query a part. A small model is asked for two, and only if the question holds
several things to ask; the parts before the last two are given the question itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel

from batos.inference.decisions.schema import Decision
from batos.minds import prompt
from batos.minds.calls import decisions, degenerate, several
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext

#: Stands for the question where only the words of the request are wanted; no request has it.
_NOTHING: Final = "\ufffc"
#: Sub-queries that a small model is asked for.
LEAN_PARTS: Final = 2
#: The reason for which a small model is not asked.
ONE_THING: Final = "the question holds one thing to ask"


def reason_for_whole(context: MindContext, parts: int) -> str:
    """Return the reason why a question is not divided at all, without asking; "" if the model is asked."""
    if context.mind.voice.form == "full" or (parts >= LEAN_PARTS and several.asks_several(context.mind.question)):
        return ""
    return ONE_THING


def shape(context: MindContext, parts: int) -> Decision[BaseModel]:
    """Return the shape of the reply."""
    if context.mind.voice.form == "full":
        return decisions.decomposition(parts)
    return decisions.decomposition(LEAN_PARTS, decisions.SHORT_QUERY)


def assign(context: MindContext, slots: Sequence[str], value: BaseModel) -> dict[str, str]:
    """Return the query of each slot: the last ones get the sub-queries, any others the question itself."""
    divided = decisions.sub_queries(value)
    whole = [context.mind.question] * (len(slots) - len(divided))
    return dict(zip(slots, (*whole, *divided), strict=True))


def question_of(context: MindContext, pillars: Sequence[tuple[str, str, str]]) -> Question:
    """Return the question that asks for the sub-queries; pillars are (slot, name, inspiration).

    A reply that copies names, examples or the request, or whose parts are alike or no questions, is of no use. Nor is,
    from a small model, a part that has no word of the question.
    """
    voice, asked = context.mind.voice, context.mind.question
    request = prompt.decompose_task(voice, _NOTHING, pillars)
    shown = "\n".join((request.text, request.alone, *(text for each in request.examples for text in each)))
    labels = [label for pillar in pillars for label in pillar]

    def fault(value: Any) -> str:
        texts = decisions.sub_queries(value)
        found = degenerate.fault(texts, asked, shown, labels)
        if not found and voice.form == "lean" and not all(degenerate.bears_on(text, asked) for text in texts):
            found = "a part is about something else"
        return found

    task = prompt.decompose_task(voice, asked, pillars)
    return Question(f"{context.mind.name}/decomposing#0", task, is_short=True, fault=fault)
