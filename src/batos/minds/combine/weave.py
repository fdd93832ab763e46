"""Cognitive weaving: one answer from parts that answered different sub-queries, and the one call of a reflex."""

from __future__ import annotations

from collections.abc import Sequence

from batos.minds import prompt
from batos.minds.calls import answers
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext
from batos.minds.prompt import Spoken
from batos.minds.results import PartResult, Synthesis
from batos.objects.message import Interpreter


async def reflex(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> None:
    """The answer at once."""
    question = Question(f"{context.mind.name}/reflex#0", prompt.reflex_task(context.mind.voice, synthesis.question))
    synthesis.said = await answers.say(interpreter, context, synthesis, question)


async def weave(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> Question:
    """The parts' answers as one; answers the question that was asked, from which a revision goes on."""
    question = _weaving(context, synthesis)
    synthesis.said = await answers.say(interpreter, context, synthesis, question)
    return question


def _weaving(context: MindContext, synthesis: Synthesis) -> Question:
    """The weave's question; what the parts said may be shortened in it, as the last resort."""
    spoken = _spoken(synthesis.parts)

    def shorter(excess: int) -> tuple[str, int]:
        parts, lost = prompt.shortened(spoken, excess)
        return prompt.weave_task(context.mind.voice, synthesis.question, parts), lost

    task = prompt.weave_task(context.mind.voice, synthesis.question, spoken)
    return Question(f"{context.mind.name}/synthesizing#0", task, shorter=shorter)


def _spoken(parts: Sequence[PartResult]) -> list[Spoken]:
    return [Spoken(part.number, part.name, part.query, answers.told(part)) for part in parts]
