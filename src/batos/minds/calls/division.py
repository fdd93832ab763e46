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
from batos.minds.question_kind import kind_of

#: Stands for the question where only the words of the request are wanted; no request has it.
_NOTHING: Final = "\ufffc"
#: Sub-queries that a small model is asked for.
LEAN_PARTS: Final = 2
#: The reasons for which no model is asked: of a small one, and of any.
ONE_THING: Final = "the question holds one thing to ask"
NO_QUESTION: Final = "it is not a question"
#: A sub-query has so many words of the question, none of them small, or the question is shown behind it.
LEAST_WORDS: Final = 2


def reason_for_whole(context: MindContext, parts: int) -> str:
    """Return the reason why a question is not divided at all, without asking; "" if the model is asked.

    A feeling, a wish or an order is no question: its parts would ask the model about the asker.
    """
    asked = context.mind.question
    if kind_of(asked) != "fact" and not degenerate.asks(asked):
        return NO_QUESTION
    if context.mind.voice.form == "full" or (parts >= LEAN_PARTS and several.asks_several(context.mind.question)):
        return ""
    return ONE_THING


def shape(context: MindContext, parts: int) -> Decision[BaseModel]:
    """Return the shape of the reply."""
    if context.mind.voice.form == "full":
        return decisions.decomposition(parts)
    return decisions.decomposition(LEAN_PARTS, decisions.SHORT_QUERY)


def assign(context: MindContext, slots: Sequence[str], value: BaseModel) -> dict[str, str]:
    """Return the query of each slot: the last ones get the sub-queries, any others the question itself.

    A sub-query that has lost what it asks about ("Within what time?") is followed by the question.
    """
    asked = " ".join(context.mind.question.split())
    divided = [
        each if degenerate.common_words(each, asked) >= LEAST_WORDS else f"{each} ({asked})"
        for each in decisions.sub_queries(value)
    ]
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
