"""The six states of the Prototypal State Machine: each does its work and names the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from batos.cognition import decisions, facets, prompt, weave
from batos.cognition.asking import Question, infer, room_for_evidence
from batos.cognition.evidence import Evidence
from batos.cognition.gate import Verdict
from batos.cognition.running import Running, Synthesis
from batos.errors import InternalError
from batos.image.records import least_trusted
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
    synthesis = work(cycle)
    synthesis.evidence = await send(interpreter, running.persona, "recall_", question, _room(running, question))
    return "SYNTHESIZING" if running.route.effort == "reflex" else "DECOMPOSING"


def _room(running: Running, question: str) -> int:
    """Bytes for evidence beside the largest prompt that this mission will need."""
    slots = _facets(running)
    longest_part = "x" * (_PART_BYTES * len(slots))
    tasks = [
        f"{prompt.weave_task(running.voice, question, ())}{longest_part}",
        prompt.decompose_task(running.voice, question, facets.pillars(running.persona, slots)),
    ]
    if running.route.effort == "reflex":
        tasks = [prompt.reflex_task(running.voice, question)]
    return room_for_evidence(running, tasks, decisions.WOVEN.num_predict)


async def decomposing(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """DECOMPOSING: one sub-query a pillar, by schema."""
    synthesis = work(cycle)
    slots = _facets(running)
    task = prompt.decompose_task(running.voice, synthesis.question, facets.pillars(running.persona, slots))
    question = Question(f"{running.name}/decomposing#0", task)
    value, _ = await infer(interpreter, running, synthesis.evidence, question, decisions.decomposition(slots))
    synthesis.queries = dict(decisions.sub_queries(value, synthesis.question))
    return "DELEGATING"


async def delegating(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """DELEGATING: the facets think, all at once; what they return is data, joined here."""
    synthesis = work(cycle)
    synthesis.parts = await facets.delegate(running, interpreter, synthesis)
    return "SYNTHESIZING"


async def synthesizing(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """SYNTHESIZING: weave, judge, revise once."""
    await weave.answer(interpreter, running, work(cycle))
    return "COMPLETE"


async def complete(running: Running, interpreter: Interpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """COMPLETE: drop the synthesis; write response, provenance and contributions onto the thought."""
    synthesis = work(cycle)
    delattr(cycle, WORK_SLOT)
    _write(running, synthesis)
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


def _write(running: Running, synthesis: Synthesis) -> None:
    thought, verdict = running.thought, synthesis.verdict
    if verdict is None:
        raise InternalError("an answer was not judged")
    lineage = least_trusted("user", "model", running.turn_trust, *("external" for _ in synthesis.evidence.passages[:1]))
    thought.answer = synthesis.answer
    thought.voices = [part.as_dict() for part in synthesis.parts]
    thought.route = running.route.as_dict()
    thought.trust = "model"
    thought.lineage_trust = lineage
    thought.cost = running.session.cost.as_dict()
    thought.provenance = _provenance(running, synthesis, verdict)
    thought.contributions = _contributions(running)


def _provenance(running: Running, synthesis: Synthesis, verdict: Verdict) -> dict[str, Any]:
    evidence = synthesis.evidence
    return {
        "journal": list(running.session.keys),
        "models": running.session.models,
        "methods": list(running.methods),
        "recalled": _recalled(evidence),
        "omitted": {"passages": evidence.omitted_passages, "turns": evidence.omitted_turns},
        "citations": [{"document": each.document, "quote": each.quote} for each in synthesis.citations],
        "unanswered": sorted(synthesis.unanswered),
        "gate": {**verdict.as_dict(), "revised": synthesis.revised},
        "read_at": running.read_at,
    }


def _recalled(evidence: Evidence) -> list[dict[str, Any]]:
    passages = [
        {
            "document": each.number,
            "name": each.name,
            "sha256": each.sha256,
            "start": each.start,
            "length": len(each.text),
            "trust": "external",
        }
        for each in evidence.passages
    ]
    return [*passages, *({"mission": turn.mission, "trust": "model"} for turn in evidence.turns)]


def _contributions(running: Running) -> list[tuple[str, Any]]:
    cost = running.session.cost
    counted = {"persona": running.voice.name, "calls": cost.calls, "measured": dict(running.session.measured)}
    found: list[tuple[str, Any]] = [("statistics", counted)]
    if running.brief.conversation is not None:
        found.append(("turn", {"conversation": running.brief.conversation}))
    return found
