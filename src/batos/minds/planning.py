"""The plan of a mission: what it would ask, call and do is shown to a person first, and then done exactly so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from batos.agency.plans import MissionPlan, PlannedCall, PlannedPart
from batos.approvals.documents import approval_error
from batos.image.ids import iso
from batos.minds import ordered_effects, tool_use
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.permission import reason_of_no, standing_plan
from batos.minds.results import Synthesis
from batos.minds.tools.toolboxes import tools_of
from batos.protocol.errors import Refused
from batos.records import call_questions

#: The reason why the question of a plan without parts is not divided.
UNDIVIDED: Final = "the plan has no parts"
_TEXT: Final = {"type": "string", "minLength": 1}
_FILE: Final = {"type": "object", "properties": {"path": _TEXT, "text": _TEXT}}
_POST: Final = {"type": "object", "properties": {"data": {"type": ["object", "array"]}}}


def is_wanted(context: MindContext) -> bool:
    """Test if a mission is to show its plan first, and has no yes to it; a copy of the mind shows none."""
    wants = context.mission.brief.plan and not context.mind.inner and context.io.methods.desk is not None
    return bool(wants and context.io.outside.reaches_out) and standing_plan(context) is None


async def stop_for_yes(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Show the plan of a mission that wants it, before anything of it is done; the answer of a rule needs none.

    Raises: ApprovalNeeded: nobody has answered. Refused: a person said no.
    """
    mission, desk = context.mission, context.io.methods.desk
    if desk is None or not is_wanted(context) or (context.trace.told and mission.order is None):
        return
    at = iso(context.io.session.clock())
    asked = next(call_questions.list_asked(mission.root, mission.id, call_questions.PLAN), None)
    if asked is not None and asked.word_at(at) != "asked":
        what = f"the plan was not approved: {reason_of_no(asked.by, asked.why)}"
        raise Refused(what, field="plan", remedy="Ask again, with another question or without --plan.")
    if asked is None:
        plan = MissionPlan(
            tuple([each async for each in _parts(context, interpreter, synthesis)]), tuple(_effects(context))
        )
        source, frame = plan.as_text(_remarks(context, plan)), _frame(context, plan)
        asking = call_questions.candidate_of(mission.id, call_questions.PLAN, source, frame, at)
        raise approval_error([await desk.ask(asking, mission.id)], "the plan")
    raise approval_error([asked.name], "the plan")


async def _parts(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis
) -> AsyncIterator[PlannedPart]:
    """Yield the question and the parts that it was divided into, each with the call that it would get."""
    question, steps = context.mind.question, context.mission.steps
    divided = {slot: query for slot, query in synthesis.queries.items() if query != question}
    numbers = {query: number for number, query in enumerate(dict.fromkeys(synthesis.queries.values()), start=1)}
    for name, query in {"": question, **divided}.items():
        step = ("DECOMPOSING", "use_tools_for_parts") if name else ("IDLE", "use_tools")
        found = None
        if step[1] in steps.names(step[0]) and steps.number(*step, "calls") and tool_use.may_use(context):
            asked = (numbers[query] if name else 0, query)
            found = await tool_use.plan_call(context, interpreter, asked, synthesis.recalled.passages)
        yield PlannedPart(name, query, () if found is None else (PlannedCall(found.tool.name, found.arguments),))


def _effects(context: MindContext) -> Iterator[PlannedCall]:
    """Yield the effect that the question orders, with the arguments that are known before the answer."""
    order = ordered_effects.order_of(context)
    if order is None:
        return
    text = ordered_effects.given_text(context, order)
    is_post = order.selector == "post_"
    given = {"data": text and ordered_effects.as_data(text)} if is_post else {"path": order.path, "text": text}
    known = {name: value for name, value in given.items() if value}
    yield PlannedCall(f"{order.grants[0]}.{order.selector}", known)


def _frame(context: MindContext, plan: MissionPlan) -> Mapping[str, Any]:
    toolbox, order = tools_of(context), context.mission.order
    tools = {} if toolbox is None else {each.name: {**each.parameters} for each in toolbox.tools()}
    schema = _POST if order is not None and order.selector == "post_" else _FILE
    effects = {} if order is None else {f"{each}.{order.selector}": schema for each in order.grants}
    return {
        "question": context.mind.question, "parts": [each.name for each in plan.parts if each.name],
        "tools": tools, "effects": effects,
    }  # fmt: skip


def _remarks(context: MindContext, plan: MissionPlan) -> Iterator[str]:
    yield context.mission.brief.text
    if any(part.calls for part in plan.parts):
        yield "Of what a search finds, up to three pages are read."
    else:
        yield "No tool is called."
    for effect in plan.effects:
        if effect.arguments.keys().isdisjoint(("text", "data")):
            yield "The text of the effect is the answer; it asks again where that comes from outside."
