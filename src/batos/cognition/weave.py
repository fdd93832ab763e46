"""Cognitive weaving: one answer from the parts, streamed, judged by the gate, revised once on a concrete fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from batos.cognition import decisions, gate, prompt
from batos.cognition.asking import Question, Replied, infer
from batos.cognition.gate import Draft, Quoted, Verdict
from batos.cognition.prompt import Message, Spoken
from batos.cognition.running import PartResult, Running, Synthesis
from batos.inference.partial import AnswerStream
from batos.inference.schema import Decision
from batos.objects.message import Interpreter

M = TypeVar("M", bound=BaseModel)

#: Names that an answer may use although no document has them.
_OWN_NAMES = frozenset({"robin", "brick", "babs", "alfred", "bat", "os", "architect"})


async def answer(interpreter: Interpreter, running: Running, synthesis: Synthesis) -> None:
    """Fill the synthesis with an answer and the gate's verdict; a fault leads to one revision."""
    reflex = not synthesis.parts
    path = f"{running.name}/{'reflex' if reflex else 'synthesizing'}#0"
    task = (
        prompt.reflex_task(running.voice, synthesis.question)
        if reflex
        else prompt.weave_task(running.voice, synthesis.question, _spoken(synthesis.parts))
    )
    question = Question(path, task)
    replied = await _say(interpreter, running, synthesis, question)
    verdict = _judge(synthesis)
    if not verdict.ok:
        then = _faults_told(running, replied, verdict)
        await _revise(interpreter, running, synthesis, replace(question, then=then))
        verdict = _judge(synthesis)
    synthesis.verdict = verdict


def _faults_told(running: Running, replied: Replied, verdict: Verdict) -> tuple[Message, ...]:
    return prompt.revision(running.voice, replied.text, [fault.what for fault in verdict.faults])


async def _revise(interpreter: Interpreter, running: Running, synthesis: Synthesis, question: Question) -> None:
    """Once, with the faults as the only addition; an answer that is faulty still stands with its faults told."""
    synthesis.revised = True
    path = f"{running.name}/revising#0"
    running.events.emit("mission.retracted", mission=running.id, path=path)
    await _say(interpreter, running, synthesis, replace(question, path=path))


async def _say(interpreter: Interpreter, running: Running, synthesis: Synthesis, question: Question) -> Replied:
    decision = decisions.WOVEN if synthesis.evidence.passages else decisions.PLAIN_WOVEN
    question = _streamed(running, question, decision)
    value, replied = await infer(interpreter, running, synthesis.evidence, question, decision)
    synthesis.evidence = replied.evidence
    synthesis.answer = value.answer.strip()
    cited = value.citations if isinstance(value, decisions.Woven) else []
    synthesis.citations = tuple(Quoted(each.document, each.quote) for each in cited)
    synthesis.unanswered = frozenset(value.unanswered)
    return replied


def _streamed(running: Running, question: Question, decision: Decision[M]) -> Question:
    """The question with its answer's text told as it grows, freed from the JSON around it."""
    stream = AnswerStream(decision.key("answer"))

    def hear(piece: str) -> None:
        text = stream.feed(piece)
        if text:
            running.events.emit("mission.token", mission=running.id, path=question.path, text=text)

    return Question(question.path, question.task, question.then, hear)


def _spoken(parts: tuple[PartResult, ...]) -> list[Spoken]:
    return [Spoken(part.number, part.name, part.query, _told(part)) for part in parts]


def _told(part: PartResult) -> str:
    if part.open:
        return "(no answer)"
    quotes = "".join(f'\n[{each.document}] "{each.quote}"' for each in part.citations)
    return f"{part.answer}{quotes}"


def _judge(synthesis: Synthesis) -> Verdict:
    draft = Draft(
        question=synthesis.question,
        answer=synthesis.answer,
        citations=synthesis.citations,
        unanswered=synthesis.unanswered,
        open_queries=frozenset(part.number for part in synthesis.parts if part.open),
        evidence=synthesis.evidence,
        known_names=_OWN_NAMES,
    )
    return gate.judge(draft)
