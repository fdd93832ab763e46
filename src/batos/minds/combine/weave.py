"""Cognitive weaving: joins the answers to different sub-queries to one answer; also the only call of a reflex."""

from __future__ import annotations

from collections.abc import Sequence

from batos.minds import prompt
from batos.minds.calls import answers
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext
from batos.minds.prompt import ShownPart
from batos.minds.results import MindAnswer, PartResult, Synthesis
from batos.minds.task import Task
from batos.objects.message import Interpreter


async def reflex(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> MindAnswer:
    """Answer at once, with one call."""
    task = prompt.reflex_task(context.mind.voice, context.mind.question)
    return await answers.say(interpreter, context, synthesis, Question(f"{context.mind.name}/reflex#0", task))


def question_of(context: MindContext, joined: Sequence[PartResult]) -> Question:
    """Return the question that joins parts to one answer; their answers may be shortened as the last resort."""
    spoken = _shown_parts(joined)

    def shorter(excess: int) -> tuple[Task, int]:
        parts, lost = prompt.shorten(spoken, excess)
        return prompt.weave_task(context.mind.voice, context.mind.question, parts), lost

    task = prompt.weave_task(context.mind.voice, context.mind.question, spoken)
    return Question(f"{context.mind.name}/synthesizing#0", task, shorter=shorter)


def _shown_parts(parts: Sequence[PartResult]) -> list[ShownPart]:
    return [ShownPart(part.number, part.name, part.query, answers.shown_answer(part)) for part in parts]
