"""The six states of the Prototypal State Machine: each does its work and names the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from batos.memory.evidence import Evidence, Passage
from batos.minds import answers_by_rule, computed_results, context_building, prompt, provenance
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, infer
from batos.minds.combine import combination
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.parts import delegate, mapping, protocols
from batos.minds.results import Synthesis
from batos.objects.prototype import Interpreter, UvmObject, send
from batos.protocol.errors import InternalError, ObjectError

#: The work of a state on the cycle; returns the next state's name.
StateWork: TypeAlias = Callable[[MindContext, MindInterpreter, UvmObject, tuple[Any, ...]], Awaitable[str]]

WORK_SLOT: Final = "_tmp_synthesis_"
#: The most remembered parts of documents that each sub-query adds to the evidence.
MOST_FOR_A_PART: Final = 3


async def idle(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Open the synthesis, keep the question, and recall evidence within the budget, once for all minds (IDLE).

    Two voices get the question as it is.
    """
    question = str(args[0])
    synthesis, slots = open_synthesis(cycle), delegate.slots_of(context)
    if context.mind.is_council:
        delegate.check_budget(context)
    recalled = context.mind.inherited
    if recalled is None:
        recalled = await recall(context, interpreter, question, *mapping.rooms_in_window(context))
    synthesis.recalled = synthesis.evidence = recalled
    await computed_results.compute(context, recalled, [question])
    context.trace.note_told(answers_by_rule.answer(context, recalled))
    is_ruled = context.trace.told or (not context.mind.inner and answers_by_rule.only_text(context))
    if is_ruled or mapping.is_needed(context):
        return "SYNTHESIZING"
    if context.mind.is_duet:
        synthesis.queries = dict.fromkeys(slots, question)
        return "DELEGATING"
    return "DECOMPOSING" if slots else "SYNTHESIZING"


async def decompose(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Divide the question (DECOMPOSING) by schema; a part takes it whole if parts compete or it got no sub-query."""
    synthesis, slots = synthesis_of(cycle), delegate.slots_of(context)
    synthesis.queries = dict.fromkeys(slots, context.mind.question)
    if combination.mode(context) != "weave":
        return "DELEGATING"
    question = decisions.question_of(context, delegate.describe(context, slots))
    synthesis.undivided = decisions.reason_for_whole(context, len(slots))
    synthesis.is_unasked = bool(synthesis.undivided)
    if not synthesis.is_unasked:
        try:
            shape = decisions.division_shape(context, len(slots))
            value, replied = await infer(interpreter, context, synthesis.evidence, question, shape)
            synthesis.queries = decisions.assign_queries(context, slots, value)
            synthesis.evidence = replied.evidence
            await recall_for_parts(context, synthesis)
            await computed_results.compute(context, synthesis.recalled, synthesis.queries.values())
        except WORDLESS as unusable:
            # A model that cannot divide the question may answer it all the same: its parts compete.
            synthesis.undivided = unusable.message
    if synthesis.undivided:
        context.decide_by_rule(question.path, "division", synthesis.undivided)
    return "DELEGATING"


async def delegate_to_parts(
    context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]
) -> str:
    """Let the parts think, all at once unless they vote, and join their results (DELEGATING)."""
    context.learn_ratio()
    synthesis = synthesis_of(cycle)
    if context.mind.is_council:
        synthesis.evidence = mapping.fit_evidence(context, synthesis.evidence)
    enough = combination.enough(context, synthesis)
    synthesis.parts = await delegate.delegate(context, interpreter, synthesis, enough)
    return "SYNTHESIZING"


async def synthesize(
    context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]
) -> str:
    """Combine the parts, judge, revise once; then apply at most one key protocol (SYNTHESIZING)."""
    context.learn_ratio()
    synthesis = synthesis_of(cycle)
    alone = mapping.answer if mapping.is_needed(context) else None
    if context.mission.brief.answer_schema is not None:
        alone = combination.answer_by_schema
    ground = await combination.combine(interpreter, context, synthesis, alone)
    await protocols.apply(interpreter, context, synthesis, ground)
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


async def recall_for_parts(context: MindContext, synthesis: Synthesis) -> None:
    """Add what is remembered for the sub-queries to the evidence: they may name what the question does not.

    A mind within another has the evidence of the outer one, whose citations name its numbers.
    """
    if context.mind.inherited is not None:
        return
    found: list[Passage] = []
    for query in dict.fromkeys(synthesis.queries.values()):
        if query != context.mind.question:
            several = await context_building.find_passages(context, query)
            found += [each for each in several if not each.is_pinned][:MOST_FOR_A_PART]
    if found:
        _widen(context, synthesis, found)


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
