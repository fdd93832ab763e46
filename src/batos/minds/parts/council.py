"""Minds whose parts are personas: in a council each runs the same cycle over its own question, of two each answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from batos.genesis.codex.codex import PILLARS
from batos.image.roots import Root
from batos.memory.evidence import Evidence
from batos.minds import context_building
from batos.minds.combine import changes, combination, two_voices
from batos.minds.context import Mind, MindContext, MindInterpreter, MindPolicy
from batos.minds.machine import begin
from batos.minds.results import PartResult, Synthesis
from batos.objects.message import send
from batos.objects.prototype import UvmObject, lookup, own_slots
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import MethodFailed, Refused
from batos.routing.router import Route

#: The names of minds in paths: of a council, and of two voices.
NAME: Final = "council"
DUET: Final = "duet"

#: The most attempts of a persona when others change what its methods read; each costs only its own time.
MOST_THOUGHTS: Final = 4

#: The slot of a persona's cycle that holds what it came back with, from its COMPLETE on.
PART_SLOT: Final = "_tmp_part_"


def mind_of(root: Root, route: Route, brief: MissionBrief, policy: MindPolicy) -> Mind:
    """Return a mission's own mind: its leader's, whose prompts name the second persona too where two think.

    Raises: NotFound: the image lacks one of them.
    """
    leader, *others = (context_building.persona_of(root, name) for name in route.personas)
    second = others[0] if route.has_two_voices else None
    voice = context_building.voice_of(leader, brief)
    name = str(leader.name).lower() if route.effort != "council" else NAME
    return Mind(
        name=DUET if second is not None else name,
        persona=leader,
        voice=voice if second is None else voice.beside(context_building.voice_of(second)),
        thinking=context_building.thinking_of(leader, brief),
        effort=route.effort,
        question=brief.text,
        policy=policy,
        second=second,
    )


def members(context: MindContext) -> tuple[str, ...]:
    """Return the personas by their places in paths, the leader first, because its prompts begin as the last
    ones sent.
    """
    leader, second = context.mind.voice.name, context.mind.second
    others = (name for name in PILLARS if name != leader) if second is None else (str(second.name),)
    return tuple(name.lower() for name in (leader, *others))


def describe(context: MindContext, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (place, name, method) of each persona; the first words of its core method describe how it works."""
    found = []
    for slot in slots:
        method = context_building.persona_of(context.mission.root, slot.upper()).core_method
        found.append((slot, slot.upper(), str(method).strip().partition(".")[0]))
    return found


def mind(context: MindContext, slot: str, query: str, evidence: Evidence) -> MindContext:
    """Return a persona's context as a mind within this one: its own voice, model and question; facts and services are
    shared. Of two voices each answers at once.
    """
    persona = context_building.persona_of(context.mission.root, slot.upper())
    return context_building.as_persona(context, persona).with_mind(
        effort="cycle" if context.mind.is_council else "reflex",
        question=query,
        name=f"{context.mind.name}/{slot}",
        inherited=evidence,
    )


async def think(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, number: int, asked: tuple[str, str]
) -> object:
    """Run a persona's own cycle and return its result. The caller checks that the result is a PartResult.

    Personas begin one after another as calls become free, and a persona whose calls have begun is not interrupted by
    the next, so that the daemon reads their common beginning once. Writes of a persona's methods are joined with its
    answer. If others have changed meanwhile what the answer rests on, the persona thinks again; paid calls are not paid
    twice.
    """
    slot, query = asked
    orchestrator = context.mission.root["orchestrator_obj"]
    within = mind(context, slot, query, synthesis.evidence)
    async with context.io.session.minds.turn(()):
        for _ in range(MOST_THOUGHTS):
            cycle = begin(orchestrator)
            inner = interpreter.within(within, cycle)
            await send(inner, orchestrator, "start_cognitive_cycle_for_", query)
            part = own_slots(cycle).get(PART_SLOT)
            if not isinstance(part, PartResult):
                return part
            moved = inner.merge_writes()
            if moved is None:
                return replace(part, number=number)
    raise MethodFailed(
        f"{moved} was changed by other personas each of the {MOST_THOUGHTS} times that {slot.upper()} thought",
        remedy="Let each persona write slots of its own.",
    )


def keep(context: MindContext, synthesis: Synthesis, cycle: UvmObject) -> None:
    """Store the result of a mind within another as a value."""
    said, verdict = synthesis.standing.answer, synthesis.standing.verdict
    setattr(
        cycle,
        PART_SLOT,
        PartResult(
            number=0,
            slot=context.mind.voice.name.lower(),
            name=context.mind.voice.name,
            query=context.mind.question,
            answer=said.answer,
            citations=said.citations,
            is_known=said.is_known,
            found_nothing=len(said.unanswered) >= max(1, len(synthesis.parts)),
            was_cut=said.was_cut,
            persona=context.mind.voice.name,
            parts=synthesis.parts,
            faults=verdict.faults,
            gist=said.gist if context.mind.policy.combine == "vote" else "",
            changes=tuple(changes.list_changes(context, synthesis)),
        ),
    )


def minds(context: MindContext, query: str = "") -> list[MindContext]:
    """Return this mind and, if its parts are personas, those within it, as if each were asked `query`."""
    if not context.mind.has_personas:
        return [context]
    return [context, *(mind(context, slot, query, Evidence()) for slot in members(context))]


def calls(context: MindContext) -> int:
    """Return the least number of calls of a mission: without second tries, revision or protocol."""
    return sum(_own_calls(each) for each in minds(context))


def _own_calls(context: MindContext) -> int:
    """Return the calls of one mind: to decompose and weave or select, none to vote; and its facets, but not its
    personas. The question is not decomposed for two voices, and where they are kept apart nothing is woven.
    """
    found = lookup(context.mind.persona, "facets")
    facets = len(found.value) if found and context.mind.effort == "cycle" and not context.mind.is_duet else 0
    mode = combination.mode(context)
    around = (
        0 if mode == "vote" or two_voices.are_kept(context) else 1 if context.mind.is_duet and mode == "weave" else 2
    )
    decisions = around + facets if facets or context.mind.has_personas else 1
    return decisions * (2 if context.mind.thinking.mode == "two_phase" else 1)


def check_budget(context: MindContext) -> None:
    """Check, before anything is paid, that the mission may pay a council.

    Raises: Refused: the budget has too few calls.
    """
    allowed, needed = context.io.session.limits.calls, calls(context) - context.io.session.paid_count
    if needed > allowed:
        raise Refused(
            f"a council needs {needed} calls and the mission may make {allowed}",
            field="budget.calls",
            remedy=f"Allow {needed} calls or more (a revision or a protocol is one more), or ask with a lower effort.",
        )
