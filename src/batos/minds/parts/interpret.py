"""Interprets an intent: its text guides one call of the persona's model, and the reply is a part's result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batos.gate.quotation_search import stands
from batos.inference.decisions.schema import Decision
from batos.memory.evidence import Evidence
from batos.minds import prompt
from batos.minds.calls import answers, decisions, sample_paths
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.parts import protocol_context
from batos.minds.prompt import PersonaPrompt
from batos.minds.results import PartResult, Synthesis
from batos.minds.task import Task
from batos.objects.message import Interpreter
from batos.objects.method import Intent


@dataclass(frozen=True, slots=True)
class SubQuery:
    """The question to one intent; `number` counts a mind's parts from 1, and 0 is no part.

    `path` is the place of the call if a method asks; a mind's own intents have places by their kind.
    """

    slot: str
    intent: Intent
    text: str
    number: int = 0
    path: str = ""


async def interpret(
    interpreter: Interpreter,
    context: MindContext,
    evidence: Evidence,
    asked: SubQuery,
    synthesis: Synthesis | None = None,
) -> PartResult:
    """Answer a sub-query by the text of its intent alone.

    Citations that are not word for word in their documents are dropped: the weave would carry them on. With the
    `synthesis` of its mind a protocol is told what it is given beside the answer, and its reply is streamed.
    """
    intent = asked.intent
    task, decision = task_of(context.mind.voice, intent, asked.text), decision_of(context, intent, evidence)
    question = Question(asked.path or sample_paths.intent_path(intent.kind, context.mind.name, asked.slot), task)
    if synthesis is None or intent.kind != "protocol":
        value, _ = await infer(interpreter, context, evidence, question, decision)
    else:
        value = await _ask_for_change(interpreter, context, synthesis, intent, question)
    cited = tuple(each for each in decisions.citations_of(value) if stands(each, evidence))
    return PartResult(
        number=asked.number,
        slot=asked.slot,
        name=intent.name,
        query=asked.text,
        answer=value.answer,
        citations=cited,
        known=getattr(value, "known", True),
        persona=context.mind.voice.name,
        gist=getattr(value, "gist", "").strip(),
    )


async def _ask_for_change(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, intent: Intent, question: Question
) -> Any:
    """Ask for an answer as a protocol changes it, streamed; what does not fit the prompt is left out from here on."""
    shown = protocol_context.text(context, synthesis, intent)
    if shown and synthesis.protocol is not None:
        synthesis.protocol["given"] = shown
    told = Question(question.path, question.task.beside(shown))
    value, _ = await answers.infer_streamed(interpreter, context, synthesis, told, decisions.CHANGED)
    return value


def task_of(voice: PersonaPrompt, intent: Intent, text: str) -> Task:
    """Return the task that an intent makes of a text: a protocol changes an answer, all others answer a question."""
    if intent.kind == "protocol":
        return prompt.protocol_task(voice, describe_intent(intent), text)
    return prompt.facet_task(voice, describe_intent(intent), text)


def describe_intent(intent: Intent) -> dict[str, str]:
    """Return an intent as a prompt names it."""
    return {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.text, "line": intent.line}


def decision_of(context: MindContext, intent: Intent, evidence: Evidence) -> Decision[Any]:
    """Return the shape that an intent is answered in; a vote has a gist."""
    if intent.kind == "protocol":
        return decisions.CHANGED
    return decisions.part(bool(evidence.passages), votes=context.mind.parts_vote)
