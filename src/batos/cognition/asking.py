"""One question to the model within the window: composed, measured, compacted once if the daemon says it is too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from batos.cognition import prompt
from batos.cognition.evidence import Evidence, without_weakest
from batos.cognition.prompt import Message, Scene
from batos.cognition.running import Running
from batos.errors import ContextOverflow
from batos.inference.bridge import ChatRequest
from batos.inference.decide import Deciding, decide
from batos.inference.schema import Decision
from batos.inference.session import Step
from batos.objects.message import Interpreter, send

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked at one step of a cycle; `then` is appended to the prompt (a revision)."""

    path: str
    task: str
    then: tuple[Message, ...] = ()
    on_token: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Replied:
    """A decision's text as the model gave it, for what may be appended to it."""

    text: str
    evidence: Evidence


async def infer(
    interpreter: Interpreter, running: Running, evidence: Evidence, question: Question, decision: Decision[M]
) -> tuple[M, Replied]:
    """Send `infer_` to the persona: what answers is pLLM_obj, or whatever the persona puts in its place."""
    answered: tuple[M, Replied] = await send(interpreter, running.persona, "infer_", evidence, question, decision)
    return answered


async def ask(running: Running, evidence: Evidence, question: Question, decision: Decision[M]) -> tuple[M, Replied]:
    """The model's decision: what `infer_` does. Raises ContextOverflow when not even the compacted prompt fits, saying what was left out."""
    scene = running.scene(evidence)
    deciding = _deciding(running, question, decision)
    question = replace(question, task=f"{question.task.strip()}\n\nReply with:\n{deciding.decision.guide}")
    try:
        value, text = await decide(deciding, _messages(running, scene, question))
    except ContextOverflow as overflow:
        smaller = _compacted(running, scene, question, overflow)
        if smaller.evidence == scene.evidence:
            raise _nothing_left(overflow) from overflow
        try:
            value, text = await decide(deciding, _messages(running, smaller, question))
        except ContextOverflow as again:
            raise _nothing_left(again) from again
        scene = smaller
    return value, Replied(text, scene.evidence)


def _messages(running: Running, scene: Scene, question: Question) -> tuple[Message, ...]:
    return prompt.compose(scene, running.voice, question.task, question.then)


def _deciding(running: Running, question: Question, decision: Decision[M]) -> Deciding[M]:
    thinking = running.thinking
    decision = decision.in_mode(thinking.mode)
    most = min(decision.num_predict, int(thinking.options["num_ctx"]) // 2)
    request = ChatRequest(
        model=thinking.model, messages=(), options={**thinking.options, "num_predict": most}, schema=decision.format
    )
    return Deciding(running.session, request, decision, thinking.mode, Step(question.path, question.on_token))


def _compacted(running: Running, scene: Scene, question: Question, overflow: ContextOverflow) -> Scene:
    """The scene with as much recall and as many old turns left out as the exact counts ask for."""
    size = prompt.size(_messages(running, scene, question))
    window = overflow.window or int(running.thinking.options["num_ctx"])
    told = (overflow.prompt_tokens or 2 * window) / max(1, size)
    # The answer needs its share of the window too: the daemon only counts the prompt.
    answer = min(window // 2, int(running.thinking.options.get("num_predict", window // 4)))
    most = prompt.room(window, answer, told)
    while size > most:
        evidence = without_weakest(scene.evidence, scene.question)
        if evidence == scene.evidence:
            break
        scene = replace(scene, evidence=evidence)
        size = prompt.size(_messages(running, scene, question))
    return scene


def _nothing_left(overflow: ContextOverflow) -> ContextOverflow:
    left = ContextOverflow(
        overflow.prompt_tokens,
        overflow.window,
        f"{overflow.message}; recall and old turns are left out already, and the persona and the question never are",
    )
    return left


def room_for_evidence(running: Running, tasks: Sequence[str], answer_tokens: int) -> int:
    """Bytes that evidence may take so that each of these tasks still fits the window beside it."""
    bare = running.scene(Evidence())
    largest = max(prompt.size(prompt.compose(bare, running.voice, task)) for task in tasks)
    window = int(running.thinking.options["num_ctx"])
    return max(0, prompt.room(window, answer_tokens, running.tokens_per_byte()) - largest)
