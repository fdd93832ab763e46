"""Two voices: below a council two personas answer the same question, each in one call; their answers are joined."""

from __future__ import annotations

from batos.minds import prompt
from batos.minds.calls import answers, decisions, sample_paths
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.parts import council
from batos.minds.results import MindAnswer, PartResult, Synthesis


async def answer(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, number: int, asked: tuple[str, str]
) -> PartResult:
    """Return the answer of one of the two personas: one call in its own voice, of its own model, judged alone."""
    slot, query = asked
    within = council.mind(context, slot, query, synthesis.evidence)
    task = prompt.reflex_task(within.mind.voice, query)
    question = Question(sample_paths.facet(context.mind.name, slot), task)
    spoken, _ = await infer(interpreter.in_voice(within), within, synthesis.evidence, question, decisions.PART)
    judged = await answers.judge_alone(
        MindAnswer(spoken.text, was_cut=spoken.was_cut), answers.ground_of(within, synthesis)
    )
    said, name = judged.answer, within.mind.voice.name
    return PartResult(
        number=number,
        slot=slot,
        name=name,
        query=query,
        answer=said.answer,
        citations=said.citations,
        is_known=said.is_known,
        found_nothing=bool(said.unanswered),
        was_cut=said.was_cut,
        persona=name,
        faults=judged.verdict.faults,
        gist=said.gist if context.mind.parts_vote else "",
    )
