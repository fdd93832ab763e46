"""Cognitive weaving: one answer from the parts, streamed, judged by the gate, revised once on a concrete fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from batos.cognition import decisions, gate, prompt
from batos.cognition.aside import aside
from batos.cognition.asking import Question, Replied, infer
from batos.cognition.gate import Draft, Ground, Verdict
from batos.cognition.prompt import Spoken
from batos.cognition.running import PartResult, Running, Said, Synthesis
from batos.inference.partial import AnswerStream
from batos.inference.schema import Decision
from batos.objects.message import Interpreter

#: Names that an answer may use although no document has them.
_OWN_NAMES = frozenset({"robin", "brick", "babs", "alfred", "bat", "os", "architect"})


async def answer(interpreter: Interpreter, running: Running, synthesis: Synthesis) -> Ground:
    """Fill the synthesis with an answer and the gate's verdict; answers the ground on which it was judged.

    In a cycle a fault leads to one revision. A reflex is one call, whatever the gate finds.
    """
    ground = Ground(synthesis.question, synthesis.recalled, _OWN_NAMES)
    reflex = not synthesis.parts
    question = _reflex(running, synthesis) if reflex else _weaving(running, synthesis)
    synthesis.said = await _say(interpreter, running, synthesis, question)
    synthesis.verdict = await judge(synthesis, synthesis.said, ground)
    if not (synthesis.verdict.ok or reflex):
        await _revise(interpreter, running, synthesis, question)
        synthesis.verdict = await judge(synthesis, synthesis.said, ground)
    return ground


def _reflex(running: Running, synthesis: Synthesis) -> Question:
    return Question(f"{running.name}/reflex#0", prompt.reflex_task(running.voice, synthesis.question))


def _weaving(running: Running, synthesis: Synthesis) -> Question:
    """The weave's question; what the facets said may be shortened in it, as the last resort."""
    spoken = _spoken(synthesis.parts)

    def shorter(excess: int) -> tuple[str, int]:
        parts, lost = prompt.shortened(spoken, excess)
        return prompt.weave_task(running.voice, synthesis.question, parts), lost

    task = prompt.weave_task(running.voice, synthesis.question, spoken)
    return Question(f"{running.name}/synthesizing#0", task, shorter=shorter)


async def _revise(interpreter: Interpreter, running: Running, synthesis: Synthesis, question: Question) -> None:
    """Once, with the faults as the only addition; an answer that is still faulty stands with its faults told."""
    said, verdict = synthesis.said, synthesis.verdict
    assert said is not None
    assert verdict is not None
    then = prompt.revision(running.voice, said.text, [fault.what for fault in verdict.faults])
    synthesis.revised = verdict
    retract(running, question.path)
    again = replace(question, path=f"{running.name}/revising#0", then=then)
    synthesis.said = await _say(interpreter, running, synthesis, again)


async def _say(interpreter: Interpreter, running: Running, synthesis: Synthesis, question: Question) -> Said:
    decision = decisions.woven(bool(synthesis.recalled.passages))
    value, replied = await infer_streamed(interpreter, running, synthesis, question, decision)
    return Said(value.answer.strip(), decisions.quoted(value), frozenset(value.unanswered), replied.text)


async def infer_streamed(
    interpreter: Interpreter, running: Running, synthesis: Synthesis, question: Question, decision: Decision[Any]
) -> tuple[Any, Replied]:
    """A decision whose field `answer` is told as it grows; what did not fit is left out from here on."""
    question = replace(question, on_token=_teller(running, question.path, decision))
    value, replied = await infer(interpreter, running, synthesis.evidence, question, decision)
    synthesis.evidence = replied.evidence
    synthesis.shortened = max(synthesis.shortened, replied.shortened)
    return value, replied


def _teller(running: Running, path: str, decision: Decision[Any]) -> Callable[[str], None]:
    """Hears a reply and tells its answer's text, freed from the JSON around it."""
    stream = AnswerStream(decision.in_mode(running.thinking.mode).key("answer"))

    def hear(piece: str) -> None:
        text = stream.feed(piece)
        if text:
            running.events.emit("mission.token", mission=running.id, path=path, text=text)

    return hear


def retract(running: Running, path: str) -> None:
    """What was streamed under a path no longer stands."""
    running.events.emit("mission.retracted", mission=running.id, path=path)


def _spoken(parts: Sequence[PartResult]) -> list[Spoken]:
    return [Spoken(part.number, part.name, part.query, _told(part)) for part in parts]


def _told(part: PartResult) -> str:
    if part.open:
        return "(no answer)"
    quotes = "".join(f'\n[{each.document}] "{each.quote}"' for each in part.citations)
    return f"{part.answer}{quotes}"


async def judge(synthesis: Synthesis, said: Said, ground: Ground) -> Verdict:
    """The gate's verdict on an answer; long evidence is searched aside."""
    draft = Draft(
        answer=said.answer,
        citations=said.citations,
        unanswered=said.unanswered,
        ground=ground,
        queries=max(1, len(synthesis.parts)),
        open_queries=frozenset(part.number for part in synthesis.parts if part.open),
    )
    size = len(said.answer) + sum(len(passage.text) for passage in ground.passages)
    return await aside(size, lambda: gate.judge(draft))
