"""The mission's answer: streamed, checked by the gate, revised once if there is a concrete fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from batos.concurrency.offload import offload
from batos.event_payloads import MISSION_RETRACTED, MISSION_TOKEN, MissionRetracted, MissionToken
from batos.gate import checks
from batos.gate.checks import GateVerdict
from batos.gate.ground import OWN_NAMES, Draft, Ground
from batos.inference.decisions.partial import AnswerStream
from batos.inference.decisions.schema import Decision
from batos.minds import prompt
from batos.minds.calls import decisions
from batos.minds.calls.questions import ModelReply, Question, infer
from batos.minds.context import MindContext
from batos.minds.results import JudgedAnswer, MindAnswer, PartResult, Synthesis
from batos.objects.message import Interpreter


def ground_of(context: MindContext, synthesis: Synthesis, given: str = "") -> Ground:
    """Gather what the answer may rest on; a mind within another is asked what that one made of the mission's question.

    `given` is what a protocol was told beside the answer.
    """
    asked = "\n".join(filter(None, (context.mission.brief.text if context.mind.inner else "", given)))
    recalled = synthesis.recalled.merge(context.trace.seen)
    return Ground(context.mind.question, recalled, OWN_NAMES, asked=asked, today=context.mission.shared.asked_at[:10])


async def say(interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question) -> MindAnswer:
    """Ask for the mission's answer; its text is told as it grows."""
    votes = context.mind.is_vote
    decision = decisions.weave_decision(bool(synthesis.recalled.passages), inner=context.mind.inner, votes=votes)
    value, replied = await infer_streamed(interpreter, context, synthesis, question, decision)
    cut = len(value.answer) >= (decisions.PART_ANSWER if context.mind.inner else decisions.ANSWER)
    gist = value.gist.strip() if votes else ""
    return MindAnswer(
        value.answer.strip(), decisions.citations_of(value), frozenset(value.unanswered), replied.text, cut, gist
    )


def stand(context: MindContext, part: PartResult, path: str) -> MindAnswer:
    """Make a part's answer the mission's, word for word with its citations, and send it to the listener at once."""
    said = part.answer.strip()
    if not context.mind.inner:
        context.io.events.emit(MISSION_TOKEN, MissionToken(mission=context.mission.id, path=path, text=said))
    cut = len(part.answer) in (decisions.PART_ANSWER, decisions.ANSWER)
    return MindAnswer(said, part.citations, text=shown_answer(part), cut=cut)


async def revise(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question
) -> MindAnswer:
    """Ask once more with the faults as the only addition. An answer that is still faulty is used, with its faults
    reported.
    """
    before = synthesis.standing
    then = prompt.revision(context.mind.voice, before.answer.text, [fault.what for fault in before.verdict.faults])
    synthesis.revised = before.verdict
    retract(context, question.path)
    again = replace(question, path=f"{context.mind.name}/revising#0", then=then)
    return await say(interpreter, context, synthesis, again)


async def infer_streamed(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, decision: Decision[Any]
) -> tuple[Any, ModelReply]:
    """Ask for a decision and stream its field `answer`, except for a mind within another."""
    if not context.mind.inner:
        teller = _Teller(context, question.path, decision.in_mode(context.mind.thinking.mode).key("answer"))
        question = replace(question, on_token=teller.hear, on_again=teller.again)
    return await infer_kept(interpreter, context, synthesis, question, decision)


async def infer_kept(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, decision: Decision[Any]
) -> tuple[Any, ModelReply]:
    """Ask for a decision. Evidence that did not fit its prompt is left out from now on."""
    value, replied = await infer(interpreter, context, synthesis.evidence, question, decision)
    synthesis.evidence = replied.evidence
    synthesis.shortened = max(synthesis.shortened, replied.shortened)
    return value, replied


class _Teller:
    """Hears a reply and tells its answer's text, freed from the JSON around it; what is asked again is retracted."""

    def __init__(self, context: MindContext, path: str, key: str) -> None:
        self._context = context
        self._path = path
        self._stream = AnswerStream(key)

    def hear(self, piece: str) -> None:
        text = self._stream.feed(piece)
        if text:
            # A literal, not a call of the type: that takes 100 ns more, for each token.
            told: MissionToken = {"mission": self._context.mission.id, "path": self._path, "text": text}
            self._context.io.events.emit(MISSION_TOKEN, told)

    def again(self) -> None:
        self._stream = AnswerStream(self._stream.key)
        retract(self._context, self._path)


def retract(context: MindContext, path: str) -> None:
    """Withdraw the text that was streamed under a path."""
    context.io.events.emit(MISSION_RETRACTED, MissionRetracted(mission=context.mission.id, path=path))


def shown_answer(part: PartResult) -> str:
    """Return a part's answer and citations as another prompt shows them."""
    if part.open:
        return "(no answer)"
    quotes = "".join(f'\n[{each.document}] "{prompt.one_line(each.quote)}"' for each in part.citations)
    return f"{part.answer}{quotes}"


def stands_alone(synthesis: Synthesis) -> bool:
    """Test if the answer is one part's alone, and so answers the one question that all parts were given."""
    return synthesis.combined.get("winner") is not None


async def judge(synthesis: Synthesis, said: MindAnswer, ground: Ground) -> JudgedAnswer:
    """Return the gate's verdict on the mission's answer, which must answer every sub-query or name it as unanswered."""
    if stands_alone(synthesis):
        return JudgedAnswer(said, await judge_alone(said, ground))
    open_queries = frozenset(part.number for part in synthesis.parts if part.open)
    draft = _draft(said, ground, max(1, len(synthesis.parts)), open_queries)
    return JudgedAnswer(said, await _run_gate(draft))


async def judge_alone(said: MindAnswer, ground: Ground) -> GateVerdict:
    """Return the gate's verdict on an answer to the question itself."""
    return await _run_gate(_draft(said, ground, 1, frozenset()))


def _draft(said: MindAnswer, ground: Ground, queries: int, open_queries: frozenset[int]) -> Draft:
    return Draft(said.answer, said.citations, said.unanswered, ground, queries, open_queries, said.cut)


async def _run_gate(draft: Draft) -> GateVerdict:
    """Run the gate, in a thread for a long answer or long evidence: the checks cost more than reading."""
    size = 24 * len(draft.answer) + 4 * sum(len(passage.text) for passage in draft.ground.passages)
    return await offload(size, lambda: checks.judge(draft))
