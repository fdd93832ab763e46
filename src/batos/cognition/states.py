"""The six states of the Prototypal State Machine: each does its work and names the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from batos.cognition import combining, decisions, facets, prompt, protocols, provenance
from batos.cognition.asking import Question, infer, room_for_evidence
from batos.cognition.evidence import Evidence
from batos.cognition.running import Running, Synthesis
from batos.errors import InternalError, ObjectError
from batos.objects.message import Interpreter, send
from batos.objects.prototype import UvmObject, lookup

#: What a state does: its work on the cycle; answers the next state's name.
StateWork: TypeAlias = Callable[[Running, Interpreter, UvmObject, tuple[Any, ...]], Awaitable[str]]

WORK_SLOT: Final = "_tmp_synthesis_"

#: Bytes that a weave's parts are expected to take, for each facet: an answer, its citations and its sub-query.
_PART_BYTES = 700


async def idle(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """IDLE: open the synthesis, keep the question, recall evidence within the budget."""
    question = str(args[0])
    setattr(cycle, WORK_SLOT, Synthesis(question))
    synthesis, slots = work(cycle), _facets(running)
    reflex = running.route.effort == "reflex" or not slots
    room = _room(running, question, () if reflex else slots)
    recalled = await send(interpreter, running.persona, "recall_", question, room)
    if not isinstance(recalled, Evidence):
        raise ObjectError(f"`recall_` answers no evidence but a {type(recalled).__name__}")
    synthesis.recalled = synthesis.evidence = recalled
    return "SYNTHESIZING" if reflex else "DECOMPOSING"


def _room(running: Running, question: str, slots: tuple[str, ...]) -> int:
    """Bytes for evidence beside the largest prompt that this mission will need."""
    if not slots:
        return room_for_evidence(running, [(prompt.reflex_task(running.voice, question), decisions.WOVEN)])
    parts = "x" * (_PART_BYTES * len(slots))
    pillars = facets.pillars(running.persona, slots)
    return room_for_evidence(
        running,
        [
            (prompt.weave_task(running.voice, question, ()) + parts, decisions.WOVEN),
            (prompt.decompose_task(running.voice, question, pillars), decisions.decomposition(slots)),
        ],
    )


async def decomposing(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """DECOMPOSING: one sub-query a pillar, by schema."""
    synthesis, slots = work(cycle), _facets(running)
    task = prompt.decompose_task(running.voice, synthesis.question, facets.pillars(running.persona, slots))
    question = Question(f"{running.name}/decomposing#0", task)
    value, replied = await infer(interpreter, running, synthesis.evidence, question, decisions.decomposition(slots))
    synthesis.queries = dict(decisions.sub_queries(value, synthesis.question))
    synthesis.evidence = replied.evidence
    return "DELEGATING"


async def delegating(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """DELEGATING: the facets think, all at once; what they return is data, joined here."""
    running.learn_ratio()
    synthesis = work(cycle)
    synthesis.parts = await facets.delegate(running, interpreter, synthesis)
    return "SYNTHESIZING"


async def synthesizing(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """SYNTHESIZING: combine the parts, judge, revise once; then at most one key protocol."""
    running.learn_ratio()
    synthesis = work(cycle)
    ground = await combining.combine(interpreter, running, synthesis)
    await protocols.apply(interpreter, running, synthesis, ground)
    return "COMPLETE"


async def complete(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """COMPLETE: drop the synthesis; write response, provenance and contributions onto the thought."""
    synthesis = work(cycle)
    delattr(cycle, WORK_SLOT)
    provenance.write(running, synthesis)
    return "IDLE"


async def failed(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """FAILED: doom the transaction; nothing of this thought can be committed any more."""
    running.doom()
    return "FAILED"


STATES: Final[dict[str, StateWork]] = {
    "psm.idle": idle,
    "psm.decomposing": decomposing,
    "psm.delegating": delegating,
    "psm.synthesizing": synthesizing,
    "psm.complete": complete,
    "psm.failed": failed,
}


def work(cycle: UvmObject) -> Synthesis:
    """What the cycle has so far."""
    synthesis = getattr(cycle, WORK_SLOT)
    if not isinstance(synthesis, Synthesis):
        raise InternalError(f"the cycle's {WORK_SLOT} is a {type(synthesis).__name__}")
    return synthesis


def _facets(running: Running) -> tuple[str, ...]:
    found = lookup(running.persona, "facets")
    return tuple(found.value) if found else ()
