"""Interprets an intent: its text guides one call of the persona's model, and the reply is a part's result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from batos.gate import attribution
from batos.genesis import persona_models
from batos.inference.decide import FreeText, SpokenText
from batos.memory.evidence import Evidence
from batos.minds import own_figures, prompt
from batos.minds.calls import answers, decisions, questions
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.prompt import PersonaPrompt
from batos.minds.results import PartResult, Synthesis, Task
from batos.objects.method import Intent, IntentKind
from batos.objects.prototype import Interpreter

#: Findings that a protocol is told at most, and characters of each.
_FINDINGS: Final = 12
_FINDING: Final = 300


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
    """Answer a sub-query by the text of its intent alone; what carries the answer is computed.

    With the `synthesis` of its mind a protocol is told what it is given beside the answer, and its reply is streamed.
    """
    intent = asked.intent
    task, shape = task_of(context.mind.voice, intent, asked.text), shape_of(intent.kind)
    question = Question(asked.path or questions.intent_path(intent.kind, context.mind.name, asked.slot), task)
    if synthesis is None or intent.kind != "protocol":
        spoken, _ = await infer(interpreter, context, evidence, question, shape)
    else:
        spoken = await _ask_for_change(interpreter, context, synthesis, intent, question)
    found = await answers.attribute_aside(spoken.text, asked.text, evidence)
    return PartResult(
        number=asked.number,
        slot=asked.slot,
        name=intent.name,
        query=asked.text,
        answer=spoken.text,
        citations=attribution.citations_of(found),
        is_known=attribution.is_known(found, evidence),
        found_nothing=attribution.finds_nothing(found) or decisions.echoes(spoken.text, asked.text),
        was_cut=spoken.was_cut,
        persona=context.mind.voice.name,
        gist=attribution.gist_of(spoken.text, found) if context.mind.parts_vote else "",
    )


async def _ask_for_change(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, intent: Intent, question: Question
) -> SpokenText:
    """Ask for an answer as a protocol changes it, streamed; what does not fit the prompt is left out from here on."""
    shown = await _given_beside(context, synthesis, intent)
    if shown and synthesis.protocol is not None:
        synthesis.protocol["given"] = shown
    told = Question(question.path, question.task.beside(shown))
    return await answers.infer_streamed(interpreter, context, synthesis, told, decisions.WHOLE)


async def _given_beside(context: MindContext, synthesis: Synthesis, intent: Intent) -> str:
    """Return the lines that follow the task of a protocol; empty for one that is given nothing.

    The same again for who thinks the same thought again: what was paid before counts, and no time is told.
    """
    if intent.given == "audit":
        return _audit(persona_models.last_audit(context.mission.root))
    if intent.given == "cost":
        answers, tokens = context.io.session.usage
        revisions = max(len(synthesis.drafts) - 1, 0)
        return f"Measured costs:\n- calls: {answers}\n- tokens, prompts counted: {tokens}\n- revisions: {revisions}"
    return await own_figures.read_given(context, intent.given) if intent.given else ""


def _audit(last: dict[str, Any] | None) -> str:
    if last is None:
        return "Findings of the computed audit: none; genesis has not run to its end."
    wrong = [each for each in last["findings"] if not each["ok"]]
    told = (" ".join(f"{each['id']}: {each['what']}. {each['remedy']}".split()) for each in wrong)
    lines = [f"- {line[:_FINDING]}" for line in told]
    if len(lines) > _FINDINGS:
        lines = [*lines[:_FINDINGS], f"- {len(wrong) - _FINDINGS} more"]
    held = f"- {len(last['findings']) - len(wrong)} of {len(last['findings'])} checks hold"
    return "\n".join((f"Findings of the computed audit, so since {last['at']}:", held, *lines))


def task_of(voice: PersonaPrompt, intent: Intent, text: str) -> Task:
    """Return the task that an intent makes of a text: a protocol changes an answer, all others answer a question."""
    if intent.kind == "protocol":
        return prompt.protocol_task(voice, describe_intent(intent), text)
    return prompt.facet_task(voice, describe_intent(intent), text)


def describe_intent(intent: Intent) -> dict[str, str]:
    """Return an intent as a prompt names it."""
    return {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.text, "line": intent.line}


def shape_of(kind: IntentKind) -> FreeText:
    """Return the shape that an intent or a method of a kind is answered in: a protocol's answer is the mission's."""
    return decisions.WHOLE if kind == "protocol" else decisions.PART
