"""Key protocols: at most one, chosen by meaning, is applied to a cycle's answer, and kept only if the gate agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from batos.gate.checks import GateFault
from batos.gate.ground import Ground
from batos.genesis.codex import protocol_conditions
from batos.inference.cost import is_spent
from batos.minds.calls import answers, decisions, degenerate, sample_paths
from batos.minds.combine import two_voices
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.parts import toolmaking
from batos.minds.parts.delegate import FATAL
from batos.minds.results import Synthesis
from batos.objects.message import send
from batos.objects.prototype import lookup
from batos.protocol.errors import BatosError, ObjectError
from batos.protocol.mission_documents import ProtocolDocument
from batos.records.intents import intent_of

#: The reason for which an answer is withdrawn while a protocol changes it.
CHANGING: Final = "a key protocol changes it"


def choose(context: MindContext, synthesis: Synthesis) -> str | None:
    """Return the slot of the protocol to apply; None for a reflex, a part of a council, and voices that are kept apart.

    The protocols that the question is meant for go first, the likeliest first; then those that have no exemplars.
    The conditions of `when` must hold. A protocol with neither exemplars nor conditions is never chosen.
    """
    if context.mind.inner or not synthesis.parts or two_voices.are_standing(synthesis):
        return None
    evidence = bool(synthesis.recalled.passages)
    answered = sum(1 for part in synthesis.parts if not part.open)
    situation = protocol_conditions.Situation(context.mind.question, context.mind.effort, answered, evidence)
    meant = context.mission.route.protocols.get(context.mind.voice.name, {})
    found = lookup(context.mind.persona, "protocols")
    slots = tuple(map(str, found.value)) if found else ()
    for slot in (*meant, *(each for each in slots if each not in meant)):
        intent = intent_of(context.mind.persona, slot) if slot in slots else None
        if intent is None or (intent.by_meaning and slot not in meant):
            continue
        if protocol_conditions.holds(intent.when, situation) if intent.when else intent.by_meaning:
            return slot
    return None


async def apply(interpreter: MindInterpreter, context: MindContext, synthesis: Synthesis, ground: Ground) -> None:
    """Let the chosen protocol change the answer. A change that fails, or has more faults than before, is discarded.

    A change for which the budget has nothing left is one that failed: the answer is paid for and stands.
    """
    slot = choose(context, synthesis)
    if slot is None:
        return
    said, verdict = synthesis.standing.answer, synthesis.standing.verdict
    told = synthesis.protocol = _document(context, slot)
    answers.retract(context, sample_paths.protocol(context.mind.name, slot), CHANGING)
    try:
        changed = await _change_answer(interpreter, context, synthesis, slot, told)
    except BatosError as error:
        if isinstance(error, FATAL) and not is_spent(error):
            raise
        told["failure"] = error.as_dict()
    else:
        cut = said.was_cut if "tool" in told else len(changed) >= decisions.ANSWER
        after = replace(said, answer=changed.strip(), was_cut=cut)
        if context.trace.seen or "given" in told:
            ground = answers.ground_of(context, synthesis, told.get("given", ""))
        judged = await answers.judge(context, synthesis, after, ground)
        faults = (*judged.verdict.faults, *_leaks(context, slot, changed, said.answer))
        told["faults"] = [fault.as_dict() for fault in faults]
        told["applied"] = len(faults) <= len(verdict.faults) and told.get("tool", slot) is not None
        if told["applied"]:
            synthesis.drafts.append(judged)
    if not told["applied"]:
        path = sample_paths.protocol(context.mind.name, slot)
        answers.tell_again(context, path, said.answer, "the key protocol changed nothing for the better")
        answers.tell_citations(context, path, said.citations, ground.evidence)


def _leaks(context: MindContext, slot: str, changed: str, before: str) -> Iterator[GateFault]:
    """Yield a fault if a changed answer has words of the order to change it, which the answer before had not."""
    intent = intent_of(context.mind.persona, slot)
    order = "" if intent is None else f"{intent.text}\n{intent.line}"
    if degenerate.copies(changed, order, f"{before}\n{context.mind.question}"):
        yield GateFault("prompt", "it has words of the order to change it")


def _document(context: MindContext, slot: str) -> ProtocolDocument:
    """Return what is known of a protocol before it is applied."""
    told = ProtocolDocument(slot=slot, applied=False)
    intent = intent_of(context.mind.persona, slot)
    if intent is not None and intent.metric:
        told["metric"] = intent.metric
    share = context.mission.route.protocols.get(context.mind.voice.name, {}).get(slot)
    if share is not None:
        told["share"] = round(share, 3)
    return told


async def _change_answer(
    interpreter: MindInterpreter, context: MindContext, synthesis: Synthesis, slot: str, told: ProtocolDocument
) -> str:
    """Return the answer after the protocol: another text, or the same with a line about the tool at its end."""
    said, intent = synthesis.standing.answer, intent_of(context.mind.persona, slot)
    if intent is None or not intent.makes:
        changed = await send(interpreter, context.mind.persona, slot, said.answer)
        if not isinstance(changed, str):
            raise ObjectError(f"{slot!r} of {context.mind.voice.name} answers no text but a {type(changed).__name__}")
        return changed
    forged = await toolmaking.forge(interpreter, context, synthesis, (slot, intent))
    told["tool"] = None if forged is None else forged.tool
    if forged is None:
        return said.answer
    answer = f"{said.answer}\n\n{forged.line}"
    answers.tell(context, sample_paths.protocol(context.mind.name, slot), answer)
    return answer
