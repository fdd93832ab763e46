"""The division of a question into one sub-query for each part: one short request, and the check of its reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from batos.minds import prompt
from batos.minds.calls import decisions, degenerate
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext

#: Stands for the question where only the words of the request are wanted; no request has it.
_NOTHING: Final = "\ufffc"


def question_of(context: MindContext, pillars: Sequence[tuple[str, str, str]]) -> Question:
    """Return the question that asks for one sub-query a pillar; pillars are (slot, name, inspiration).

    A reply that copies names or the request, or whose parts are alike or no questions, is of no use.
    """
    voice, asked = context.mind.voice, context.mind.question
    request = prompt.decompose_task(voice, _NOTHING, pillars)
    labels = [label for pillar in pillars for label in pillar]

    def fault(value: Any) -> str:
        return degenerate.fault(decisions.sub_queries(value), asked, request.text, labels)

    task = prompt.decompose_task(voice, asked, pillars)
    return Question(f"{context.mind.name}/decomposing#0", task, short=True, fault=fault)
