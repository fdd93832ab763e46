"""The primitives that a method may send to its mission: inference in its persona's voice, recall, and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from batos.gate import citations
from batos.memory.evidence import Evidence
from batos.methods.execution.argument_binding import bind_arguments
from batos.methods.execution.invocation import LONGEST_LINE, Invocation, Thought
from batos.methods.execution.plain_data import describe_type
from batos.methods.execution.resolution import ToMethod
from batos.minds import context_building, prompt
from batos.minds.calls import answers, sample_paths
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.parts.interpret import describe_intent, shape_of, task_of
from batos.minds.task import Task
from batos.objects.message import send
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, label, reference
from batos.protocol.errors import ObjectError
from batos.records.intents import is_interpretable

_log = structlog.get_logger("batos.object")

#: The most characters of a method's question; a longer one fits no model's window.
LONGEST_PROMPT: Final = 64 * 1024
#: The default and the largest size in bytes of the evidence that `recall_` returns.
ROOM, MOST_ROOM = 4_000, 64_000
#: The options that a method may set, with their bounds; only the codex sets the others.
OPTIONS: Final[Mapping[str, tuple[float, float]]] = {
    "seed": (0, 2**31 - 1),
    "temperature": (0.0, 2.0),
    "top_k": (1, 1_000),
    "top_p": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A method's question to the model: the arguments of `infer_(prompt, system=None, **options)`."""

    prompt: str
    system: str | None
    options: Mapping[str, int | float]


def parse_question(args: Sequence[Any], kwargs: Mapping[str, Any]) -> ModelQuestion:
    """Return the question in the arguments of `infer_`.

    Raises: ObjectError: an argument is wrong; the message names it.
    """
    given = bind_arguments(lambda prompt, system=None, **options: None, "infer_", args, kwargs)
    text, system, options = given["prompt"], given.get("system"), given.get("options", {})
    for name, value in (("prompt", text), ("system", system)):
        if not isinstance(value, str) and not (name == "system" and value is None):
            raise ObjectError(f"`infer_` takes its {name} as text, not as {describe_type(value)}")
        if value is not None and len(value) > LONGEST_PROMPT:
            raise ObjectError(f"`infer_` takes a {name} of at most {LONGEST_PROMPT:,} characters, not {len(value):,}")
    if not text.strip():
        raise ObjectError("`infer_` was asked nothing: its prompt is empty")
    return ModelQuestion(
        text, system, {name: _option(name, value) for name, value in options.items() if value is not None}
    )


def _option(name: str, value: Any) -> int | float:
    """Return an option's value if a method may set it so.

    Raises: ObjectError: the option is unknown or out of its bounds.
    """
    if name not in OPTIONS:
        raise ObjectError(f"`infer_` takes no option {name[:40]!r}: it takes {', '.join(OPTIONS)}")
    least, most = OPTIONS[name]
    whole = isinstance(least, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not least <= value <= most:
        raise ObjectError(f"`infer_` takes {name} from {least} to {most}, not {str(value)[:40]}")
    number: int | float = value
    return number


async def think(invocation: Invocation[ToMethod], target: UvmObject, number: int, question: ModelQuestion) -> Thought:
    """Ask the model, with the mission's evidence beside the question, and return its answer.

    `number` counts the calls of this run from 0. The answer is in the voice of `target`, the object to which the method
    sent `infer_`, if that is a persona; otherwise in the voice of the mission.
    """
    context = in_voice_of(invocation.context, target)
    thinking = replace(context.mind.thinking, options={**context.mind.thinking.options, **question.options})
    context = context.with_mind(thinking=thinking)
    intent = invocation.message.intent if target is invocation.message.receiver else None
    call = Question(sample_paths.call(invocation.path, number), _task(context, intent, question))
    interpreter, evidence = invocation.interpreter.in_voice(context), invocation.evidence
    spoken, _ = await infer(interpreter, context, evidence, call, shape_of(invocation.message.kind))
    found = await answers.attribute_aside(spoken.text, question.prompt, evidence)
    return Thought(spoken.text, citations.citations_of(found), not citations.finds_nothing(found))


def in_voice_of(context: MindContext, receiver: UvmObject) -> MindContext:
    """Return the context with the receiver's voice if the receiver is another persona, otherwise unchanged."""
    if receiver is context.mind.persona or not context_building.is_persona(receiver):
        return context
    return context_building.as_persona(context, receiver)


def _task(context: MindContext, intent: Intent | None, question: ModelQuestion) -> Task:
    """Return the task of the prompt. Without a system text the method asks as its intent would be interpreted.

    A tool has no voice: its question is the whole task.
    """
    if question.system is not None or intent is None or not is_interpretable(intent):
        return prompt.method_task(question.system or "", question.prompt)
    if intent.kind == "protocol":
        # The method's prompt already contains the answer, so the prompt is the task.
        return prompt.protocol_task(context.mind.voice, describe_intent(intent), question.prompt, fenced=False)
    return task_of(context.mind.voice, intent, question.prompt)


async def recall(invocation: Invocation[ToMethod], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Evidence:
    """Recall the evidence for a query within `room` bytes, and note it as seen by the mission.

    Raises: ObjectError: the arguments are wrong, or the persona's `recall_` answers no evidence.
    """
    given = bind_arguments(lambda query, room=ROOM: None, "recall_", args, kwargs)
    query, room = given["query"], given.get("room", ROOM)
    if not isinstance(query, str) or not query.strip() or len(query) > LONGEST_PROMPT:
        raise ObjectError("`recall_` takes a text: what is looked for")
    if not isinstance(room, int) or isinstance(room, bool) or not 0 <= room <= MOST_ROOM:
        raise ObjectError(f"`recall_` takes bytes from 0 to {MOST_ROOM:,}, not {str(room)[:40]}")
    found = await send(invocation.interpreter, invocation.context.mind.persona, "recall_", query, room)
    if not isinstance(found, Evidence):
        raise ObjectError(f"`recall_` answers no evidence but a {type(found).__name__}")
    invocation.context.trace.seen.append(found)
    return found


def recalled_texts(found: Evidence) -> list[str]:
    """Return the evidence as a method gets it: a text for each passage, each summary of older turns, and each turn."""
    passages = [f"{each.name}: {each.text}" for each in found.passages]
    older = [each.text for each in found.view]
    turns = [f"{each.question}\n{each.answer}" for each in found.turns]
    return [*passages, *older, *turns]


def log(invocation: Invocation[ToMethod], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Log a line of a method as data.

    A long line is cut to LONGEST_LINE characters; lines after MOST_LINES are dropped.
    """
    if not invocation.limits.log():
        return
    text = " ".join(str(each) for each in (*args, *kwargs.values()))
    _log.info(
        "object",
        mission=invocation.context.mission.id,
        receiver=label(invocation.message.receiver),
        oid=reference(invocation.message.receiver),
        selector=invocation.message.selector,
        text=text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…",
    )
