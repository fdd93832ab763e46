"""Carries out the order in a question: arguments that no rule bound are asked for once, and the effect is staged."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, create_model

from batos.agency.records import effect_records
from batos.inference.schema import Decision
from batos.memory.evidence import Evidence
from batos.memory.exchanges import ACTS
from batos.memory.segmentation import clip_line
from batos.minds.calls.questions import WORDLESS, Question, infer
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.effect_orders import USUAL, EffectOrder, order_phrases
from batos.minds.permission import standing_plan
from batos.minds.results import Synthesis, Task
from batos.minds.trace import ToldAnswer
from batos.objects.prototype import send
from batos.protocol.errors import ObjectError

#: Characters of a text that are quoted in an answer, and that a model is shown to name a file by.
_QUOTED, _SHOWN = 160, 600
#: The place in a sample path of the one call by which an effect's arguments are completed.
_STEP: Final = "effect#0"


def order_of(context: MindContext) -> EffectOrder | None:
    """Return the order in the question, as the plan has it where a person said yes to one: none, or its arguments."""
    order, plan = context.mission.order, standing_plan(context)
    if order is None or plan is None:
        return order
    if not plan.effects:
        return None
    grant, _, selector = plan.effects[0].name.rpartition(".")
    given = plan.effects[0].arguments
    text = json.dumps(given["data"], ensure_ascii=False) if "data" in given else str(given.get("text", ""))
    return replace(order, grants=(grant,), selector=selector, path=str(given.get("path", "")), text=text)


def told_answer(context: MindContext) -> ToldAnswer | None:
    """Return the answer to an order that has its text, beside which nothing is asked; None for any other question."""
    order = order_of(context)
    if order is None or order.question or context.mind.inner or not (text := given_text(context, order)):
        return None
    form = order_phrases()[order.language]["staged"]
    return ToldAnswer(ACTS, form.format(what=order.path or order.grants[0], text=clip_line(text, _QUOTED)))


def given_text(context: MindContext, order: EffectOrder) -> str:
    """Return the text of an order that is there before the answer: the person's own, or the answer before.

    The effect is trusted no more than that answer is.
    """
    if order.text or order.question or not context.mission.past.count:
        return order.text
    before = next(iter(context.mission.past.newest()), None)
    if before is None:
        return ""
    context.trace.trusts.append(before.trust)
    return before.answer.strip()


async def carry_out(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Send the message that a question orders, with its answer; why none is sent stands among the mission's rules.

    An answer of a rule that found nothing is no text to be written.
    """
    order, said = order_of(context), synthesis.standing.answer
    if order is None:
        return
    text = given_text(context, order) or (said.answer.strip() if order.question and not said.is_ruled else "")
    if not text:
        context.decide_by_rule(_STEP, "effect", "there is no text to be written or sent")
        return
    grant, path = await _complete(context, interpreter, order, text)
    arguments = [as_data(text)] if order.selector == "post_" else [path, text]
    capability = effect_records.find_capability(context.mission.root, grant, context.mission.brief.user)
    if capability is None:
        return
    try:
        await send(interpreter, capability, order.selector, *arguments)
    except ObjectError as error:
        context.decide_by_rule(_STEP, "effect", error.message)


def as_data(text: str) -> object:
    """Return a text as the data of a post: JSON as it is, any other text under a key."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict | list) else {"text": text}


async def _complete(
    context: MindContext, interpreter: MindInterpreter, order: EffectOrder, text: str
) -> tuple[str, str]:
    """Return grant and path of an order: what no rule bound is asked for in one call, and where that fails is usual."""
    lacks_path = order.selector != "post_" and not order.path
    if not lacks_path and len(order.grants) == 1:
        return order.grants[0], order.path
    asks = "the name of a file for this text, in one to three small words" if lacks_path else ""
    which = "where it belongs" if len(order.grants) > 1 else ""
    task = Task(f"Give {' and '.join(filter(None, (asks, which)))}.\n\n{clip_line(text, _SHOWN)}")
    question = Question(f"{context.mind.name}/{_STEP}", task, is_short=True)
    try:
        found, _ = await infer(interpreter, context, Evidence(), question, _missing(lacks_path, order.grants))
    except WORDLESS as wordless:
        context.decide_by_rule(_STEP, "effect", wordless.message)
        return order.grants[0], order.path or USUAL
    given = found.model_dump()
    name = re.sub(r"[^a-z0-9]+", "_", str(given.get("file", "")).lower()).strip("_")
    return given.get("grant", order.grants[0]), order.path or (f"{name}.txt" if name else USUAL)


@lru_cache(maxsize=32)
def _missing(lacks_path: bool, grants: tuple[str, ...]) -> Decision[BaseModel]:
    """Return the shape of what is missing: a file's name, one of several grants."""
    fields: dict[str, Any] = {}
    if lacks_path:
        fields["file"] = (Annotated[str, Field(max_length=40)], ...)
    if len(grants) > 1:
        fields["grant"] = (Literal[grants], ...)
    shape: type[BaseModel] = create_model("EffectArguments", **fields)
    return Decision(shape)
