"""The six states of the Prototypal State Machine: each does its work and names the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from batos.memory.evidence import Evidence, Passage
from batos.minds import (
    answers_by_rule,
    computed_results,
    context_building,
    ordered_effects,
    planning,
    prompt,
    provenance,
    tool_use,
)
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, infer
from batos.minds.combine import combination, repair
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.parts import delegate, mapping, protocols
from batos.minds.permission import standing_plan
from batos.minds.results import Synthesis
from batos.objects.prototype import Interpreter, UvmObject, send
from batos.protocol.errors import InternalError, ObjectError

#: The work of a state on the cycle; returns the next state's name.
StateWork: TypeAlias = Callable[[MindContext, MindInterpreter, UvmObject, tuple[Any, ...]], Awaitable[str]]
#: A step of a state's work; one that finishes the answer has it, as it was combined.
WorkingStep: TypeAlias = Callable[[MindContext, MindInterpreter, Synthesis], Awaitable[None]]
FinishingStep: TypeAlias = Callable[
    [MindContext, MindInterpreter, Synthesis, combination.CombinedAnswer], Awaitable[None]
]

WORK_SLOT: Final = "_tmp_synthesis_"


async def idle(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Open the synthesis, keep the question, and recall evidence within the budget, once for all minds (IDLE).

    Two voices get the question as it is.
    """
    synthesis, slots = open_synthesis(cycle), delegate.slots_of(context)
    if context.mind.is_council:
        delegate.check_budget(context)
    await _take_steps("IDLE", context, interpreter, synthesis)
    is_ruled = context.trace.told or (not context.mind.inner and answers_by_rule.only_text(context))
    if slots and not (is_ruled or mapping.is_needed(context) or context.mind.is_duet):
        return "DECOMPOSING"
    await planning.stop_for_yes(context, interpreter, synthesis)
    if is_ruled or mapping.is_needed(context) or not slots:
        return "SYNTHESIZING"
    synthesis.queries = dict.fromkeys(slots, context.mind.question)
    return "DELEGATING"


async def decompose(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Divide the question (DECOMPOSING) by schema; a part takes it whole if parts compete or it got no sub-query."""
    synthesis, slots = synthesis_of(cycle), delegate.slots_of(context)
    synthesis.queries = dict.fromkeys(slots, context.mind.question)
    if combination.mode(context) != "weave":
        await planning.stop_for_yes(context, interpreter, synthesis)
        return "DELEGATING"
    if "divide" not in context.mission.steps.names("DECOMPOSING"):
        synthesis.undivided, synthesis.is_unasked = decisions.LEFT_OUT, True
    await _take_steps("DECOMPOSING", context, interpreter, synthesis)
    await planning.stop_for_yes(context, interpreter, synthesis)
    if synthesis.undivided:
        context.decide_by_rule(decisions.division_path(context), "division", synthesis.undivided)
    return "DELEGATING"


async def delegate_to_parts(
    context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]
) -> str:
    """Let the parts think, all at once unless they vote, and join their results (DELEGATING)."""
    context.learn_ratio()
    await _take_steps("DELEGATING", context, interpreter, synthesis_of(cycle))
    return "SYNTHESIZING"


async def synthesize(
    context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]
) -> str:
    """Combine the parts, judge, revise once; then apply at most one key protocol (SYNTHESIZING)."""
    context.learn_ratio()
    synthesis = synthesis_of(cycle)
    alone = mapping.answer if mapping.is_needed(context) else None
    if context.trace.wanted:
        alone = combination.reflex
    elif context.mission.brief.answer_schema is not None:
        alone = combination.answer_by_schema
    said = await combination.combine(interpreter, context, synthesis, alone)
    for step in context.mission.steps.names("SYNTHESIZING"):
        if step != "combine":  # the first of them, wherever the others stand: they work on its answer
            await FINISHING[step](context, interpreter, synthesis, said)
    return "COMPLETE"


async def complete(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """COMPLETE: drop the synthesis; write response, provenance and contributions onto the thought.

    A mind within another writes nothing: it leaves its answer to be joined.
    """
    synthesis = synthesis_of(cycle)
    delattr(cycle, WORK_SLOT)
    if context.mind.inner:
        delegate.keep_parts(context, synthesis, cycle)
    else:
        await ordered_effects.carry_out(context, interpreter, synthesis)
        answers.settle_stream(context, synthesis)
        provenance.write(context, synthesis)
    return "IDLE"


async def fail(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Doom the transaction: nothing of this thought can be committed any more (FAILED)."""
    context.doom()
    return "FAILED"


STATES: Final[dict[str, StateWork]] = {
    "psm.idle": idle,
    "psm.decomposing": decompose,
    "psm.delegating": delegate_to_parts,
    "psm.synthesizing": synthesize,
    "psm.complete": complete,
    "psm.failed": fail,
}


# -- the named steps of the states, which take them in the order of their slots (genesis/state_steps.py)


async def _take_steps(state: str, context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    for step in context.mission.steps.names(state):
        await WORKING[state][step](context, interpreter, synthesis)


async def _recall(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Recall the evidence, unless the outer mind has: as much as fits the share of the window's room."""
    recalled = context.mind.inherited
    if recalled is None:
        share = context.mission.steps.number("IDLE", "recall", "room")
        rooms = (room * share // 100 for room in mapping.rooms_in_window(context))
        recalled = await recall(context, interpreter, context.mind.question, *rooms)
    synthesis.recalled = synthesis.evidence = recalled


async def _use_tools(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Let tools bring what the question needs and nothing known carries; weaker evidence makes room for it."""
    most = context.mission.steps.number("IDLE", "use_tools", "calls")
    if not tool_use.may_use(context) or not most or planning.is_wanted(context):
        return
    if await tool_use.hand_over(context, interpreter, synthesis.recalled.passages):
        return
    found = await _find_with_tools(context, interpreter, synthesis, (0, context.mind.question), most)
    if found:
        _make_room(context, synthesis, sum(each.size for each in found))
        _widen(context, synthesis, found)


async def _use_tools_for_parts(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Let tools bring what the sub-queries need; calls were shown the evidence, so that all of it stays."""
    most = context.mission.steps.number("DECOMPOSING", "use_tools_for_parts", "calls")
    if not tool_use.may_use(context) or not most or planning.is_wanted(context):
        return
    for asked in enumerate(dict.fromkeys(synthesis.queries.values()), start=1):
        if asked[1] != context.mind.question:
            _widen(context, synthesis, await _find_with_tools(context, interpreter, synthesis, asked, most))


async def _find_with_tools(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, asked: tuple[int, str], most: int
) -> tuple[Passage, ...]:
    """Return what tools bring for a question, by the calls of its plan where it has one, else by at most so many."""
    plan, known = standing_plan(context), synthesis.recalled.passages
    if plan is None:
        return await tool_use.find_with_tools(context, interpreter, asked, known, most)
    return await tool_use.make_planned(context, asked, known, plan.calls_for(asked[1]))


async def _compute(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    await computed_results.compute(context, synthesis.recalled, [context.mind.question])


async def _rule(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    if not context.trace.wanted:
        told = ordered_effects.told_answer(context) or answers_by_rule.answer(context, synthesis.recalled)
        context.trace.note_told(told)


async def _divide(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Ask for the sub-queries, unless a rule knows that the question is one, or a plan has them."""
    slots, plan = delegate.slots_of(context), standing_plan(context)
    if plan is not None:
        named = {each.name: each.query for each in plan.parts if each.name in slots}
        synthesis.queries |= named
        synthesis.is_unasked, synthesis.undivided = not named, "" if named else planning.UNDIVIDED
        return
    synthesis.undivided = decisions.reason_for_whole(context, len(slots))
    synthesis.is_unasked = bool(synthesis.undivided)
    if synthesis.is_unasked:
        return
    question = decisions.question_of(context, delegate.describe(context, slots))
    shape = decisions.division_shape(context, len(slots))
    try:
        value, replied = await infer(interpreter, context, synthesis.evidence, question, shape)
    except WORDLESS as unusable:
        # A model that cannot divide the question may answer it all the same: its parts compete.
        synthesis.undivided = unusable.message
    else:
        synthesis.queries = decisions.assign_queries(context, slots, value)
        synthesis.evidence = replied.evidence


async def _compute_for_parts(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    divided = [query for query in synthesis.queries.values() if query != context.mind.question]
    await computed_results.compute(context, synthesis.recalled, divided)


async def _fit_evidence(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    if context.mind.is_council:
        synthesis.evidence = mapping.fit_evidence(context, synthesis.evidence)


async def _delegate(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    enough = combination.enough(context, synthesis)
    synthesis.parts = await delegate.delegate(context, interpreter, synthesis, enough)


async def _repair(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, said: combination.CombinedAnswer
) -> None:
    if not said.is_final:
        await repair.mend(interpreter, context, synthesis, said.question, said.ground)


async def _withhold(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, said: combination.CombinedAnswer
) -> None:
    if not said.is_final:
        await repair.withhold(context, synthesis, said.ground)


async def _apply_protocol(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, said: combination.CombinedAnswer
) -> None:
    await protocols.apply(interpreter, context, synthesis, said.ground)


def open_synthesis(cycle: UvmObject) -> Synthesis:
    """Put an empty synthesis into a cycle, or into that of a message, which is a cycle of one step."""
    synthesis = Synthesis()
    setattr(cycle, WORK_SLOT, synthesis)
    return synthesis


async def recall(context: MindContext, interpreter: Interpreter, query: str, *rooms: int) -> Evidence:
    """Return what the mind's persona recalls for a query, within so many bytes (for passages, and for turns if there is
    a second number). ObjectError: it is no evidence.
    """
    recalled = await send(interpreter, context.mind.persona, "recall_", query, *rooms)
    if not isinstance(recalled, Evidence):
        raise ObjectError(f"`recall_` answers no evidence but a {type(recalled).__name__}")
    return recalled


async def recall_for_parts(context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis) -> None:
    """Add what is remembered for the sub-queries to the evidence: they may name what the question does not.

    A mind within another has the evidence of the outer one, whose citations name its numbers.
    """
    if context.mind.inherited is not None:
        return
    found: list[Passage] = []
    most = context.mission.steps.number("DECOMPOSING", "recall_for_parts", "most")
    for query in dict.fromkeys(synthesis.queries.values()):
        if query != context.mind.question:
            several = await context_building.find_passages(context, query)
            found += [each for each in several if not each.is_pinned][:most]
    if found:
        _widen(context, synthesis, found)


def _make_room(context: MindContext, synthesis: Synthesis, size: int) -> None:
    """Leave out the weakest evidence, before any call was shown it, until so many bytes are free for passages."""
    rooms = mapping.rooms_in_window(context)
    excess = sum(each.size for each in synthesis.recalled.passages) + size - rooms[0]
    if excess <= 0:
        return
    lighter = synthesis.recalled.lighten(context.mind.question, min(excess, size))
    kept = tuple(replace(each, number=number) for number, each in enumerate(lighter.passages, 1))
    synthesis.recalled = synthesis.evidence = replace(lighter, passages=kept)


def _widen(context: MindContext, synthesis: Synthesis, found: Sequence[Passage]) -> None:
    """Add passages that the evidence has not, as long as there is room for them beside it."""
    rooms = mapping.rooms_in_window(context)
    left = rooms[0] - sum(each.size for each in synthesis.recalled.passages)
    if len(rooms) == 1:
        left -= prompt.evidence_size(context.mission.shared.with_evidence(replace(synthesis.recalled, passages=())))
    fitting: list[Passage] = []
    for each in found:
        if each.size <= left:
            fitting.append(each)
            left -= each.size
    wider = synthesis.recalled.merge([Evidence(passages=tuple(fitting))])
    fresh = wider.passages[len(synthesis.recalled.passages) :]
    synthesis.recalled = wider
    synthesis.evidence = replace(synthesis.evidence, passages=(*synthesis.evidence.passages, *fresh))


def synthesis_of(cycle: UvmObject) -> Synthesis:
    """Return the cycle's synthesis so far."""
    synthesis = getattr(cycle, WORK_SLOT)
    if not isinstance(synthesis, Synthesis):
        raise InternalError(f"the cycle's {WORK_SLOT} is a {type(synthesis).__name__}")
    return synthesis


#: The named steps of the states in which a mind works, and those that finish its answer, which `combine` made.
WORKING: Final[Mapping[str, Mapping[str, WorkingStep]]] = {
    "IDLE": {"recall": _recall, "use_tools": _use_tools, "compute": _compute, "rules": _rule},
    "DECOMPOSING": {
        "divide": _divide,
        "recall_for_parts": recall_for_parts,
        "use_tools_for_parts": _use_tools_for_parts,
        "compute": _compute_for_parts,
    },
    "DELEGATING": {"fit_evidence": _fit_evidence, "delegate": _delegate},
}
FINISHING: Final[Mapping[str, FinishingStep]] = {
    "repair": _repair,
    "withhold": _withhold,
    "protocol": _apply_protocol,
}
