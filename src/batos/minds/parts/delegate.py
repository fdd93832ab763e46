"""A mind's parts: its facets, two voices, or a council's personas; they think, return data, and may disagree."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from batos.approvals.documents import combine_reasons
from batos.genesis.codex.codex import PILLARS
from batos.image.roots import Root
from batos.memory.evidence import Evidence
from batos.minds import context_building, prompt
from batos.minds.calls import answers, decisions, questions
from batos.minds.calls.questions import WORDLESS, Question, infer
from batos.minds.combine import changes, combination
from batos.minds.context import Mind, MindContext, MindInterpreter, MindPolicy
from batos.minds.machine import begin
from batos.minds.results import Enough, MindAnswer, PartResult, Synthesis
from batos.objects.prototype import UvmObject, lookup, own_slots, send
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import (
    ApprovalNeeded,
    BatosError,
    ImageError,
    InternalError,
    MethodFailed,
    MissionFailed,
    ObjectError,
    Refused,
    TimedOut,
)
from batos.protocol.event_payloads import MISSION_PARTIAL, MissionPartial
from batos.records.methods import intent_of
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


def council_members(context: MindContext) -> tuple[str, ...]:
    """Return the personas by their places in paths, the leader first, because its prompts begin as the last
    ones sent.
    """
    leader, second = context.mind.voice.name, context.mind.second
    others = (name for name in PILLARS if name != leader) if second is None else (str(second.name),)
    return tuple(name.lower() for name in (leader, *others))


def describe_council(context: MindContext, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (place, name, method) of each persona; the first words of its core method describe how it works."""
    found = []
    for slot in slots:
        method = context_building.persona_of(context.mission.root, slot.upper()).core_method
        found.append((slot, slot.upper(), str(method).strip().partition(".")[0]))
    return found


def council_mind(context: MindContext, slot: str, query: str, evidence: Evidence) -> MindContext:
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


async def think_as_part(
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
    within = council_mind(context, slot, query, synthesis.evidence)
    async with context.io.session.minds:
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


def keep_parts(context: MindContext, synthesis: Synthesis, cycle: UvmObject) -> None:
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


def council_minds(context: MindContext, query: str = "") -> list[MindContext]:
    """Return this mind and, if its parts are personas, those within it, as if each were asked `query`."""
    if not context.mind.has_personas:
        return [context]
    return [context, *(council_mind(context, slot, query, Evidence()) for slot in council_members(context))]


def council_calls(context: MindContext) -> int:
    """Return the least number of calls of a mission: without second tries, revision or protocol."""
    return sum(_own_calls(each) for each in council_minds(context))


def _own_calls(context: MindContext) -> int:
    """Return the calls of one mind: to decompose and weave or select, none to vote; and its facets, but not its
    personas. The question is not decomposed for two voices, and where they are kept apart nothing is woven.
    """
    found = lookup(context.mind.persona, "facets")
    facets = len(found.value) if found and context.mind.effort == "cycle" and not context.mind.is_duet else 0
    mode = combination.mode(context)
    around = (
        0 if mode == "vote" or combination.are_kept(context) else 1 if context.mind.is_duet and mode == "weave" else 2
    )
    decisions = around + facets if facets or context.mind.has_personas else 1
    return decisions * (2 if context.mind.thinking.mode == "two_phase" else 1)


def check_budget(context: MindContext) -> None:
    """Check, before anything is paid, that the mission may pay a council.

    Raises: Refused: the budget has too few calls.
    """
    allowed, needed = context.io.session.limits.calls, council_calls(context) - context.io.session.paid_count
    if needed > allowed:
        raise Refused(
            f"a council needs {needed} calls and the mission may make {allowed}",
            field="budget.calls",
            remedy=f"Allow {needed} calls or more (a revision or a protocol is one more), or ask with a lower effort.",
        )


T = TypeVar("T")

#: Errors that no other part could mend: they end the mission, however many parts answered.
FATAL = (ImageError, InternalError, Refused, TimedOut, ApprovalNeeded)


def slots_of(context: MindContext) -> tuple[str, ...]:
    """Return the slots of a mind's parts in their order: `guide_facet_`, or `brick` for personas."""
    if context.mind.effort == "reflex":
        return ()
    if context.mind.has_personas:
        return council_members(context)
    found = lookup(context.mind.persona, "facets")
    return tuple(found.value) if found else ()


def describe(context: MindContext, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (slot, name, inspiration) of each part, as the decomposition's prompt lists them."""
    if context.mind.is_council:
        return describe_council(context, slots)
    return pillars(context.mind.persona, slots)


async def delegate(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, enough: Enough | None = None
) -> tuple[PartResult, ...]:
    """Ask every part its sub-query, all at once, and return the results; a failed part has its reason.

    With `enough` parts are asked one after another until `enough` returns True.

    Raises: MissionFailed, or the reason that all have in common: fewer parts are left than the quorum (half of them, if
    the state was not redefined); words of the model that were of no use do not count. ApprovalNeeded: some parts wait
    for a person; the others finished first, so that their paid answers are there later. Errors that no other part could
    mend are raised at once.
    """
    asked = enumerate(synthesis.queries.items(), start=1)
    work = [_part(context, interpreter, synthesis, number, query) for number, query in asked]
    parts = await _together(work) if enough is None else await _in_turn(work, enough)
    failures = [part.failure for part in parts if part.failure is not None]
    needed = [failure for failure in failures if isinstance(failure, ApprovalNeeded)]
    if needed:
        raise combine_reasons(needed)
    failures = [failure for failure in failures if not isinstance(failure, WORDLESS)]
    if 100 * len(failures) > (100 - context.mission.steps.number("DELEGATING", "delegate", "quorum")) * len(parts):
        raise _quorum_error(failures, parts)
    return tuple(parts)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run side by side and return the results in order; the first error ends the others and is raised unchanged."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


async def _in_turn(work: Sequence[Coroutine[Any, Any, PartResult]], enough: Enough) -> list[PartResult]:
    """Run one after another until enough is known, and return the results in order."""
    parts: list[PartResult] = []
    try:
        for each in work:
            parts.append(await each)
            if enough(parts):
                break
    finally:
        for each in work:
            each.close()
    return parts


def _quorum_error(failures: Sequence[BatosError], parts: Sequence[PartResult]) -> BatosError:
    """Return the common reason if there is one, since it has the remedy; else the number of failures and the first
    reason.
    """
    first = failures[0]
    if all(type(failure) is type(first) for failure in failures):
        return first
    kind = "personas" if parts[0].is_mind else "facets"
    return MissionFailed(f"{len(failures)} of {len(parts)} {kind} failed; the first: {first}", remedy=first.remedy)


async def _part(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, number: int, asked: tuple[str, str]
) -> PartResult:
    """Return one part's answer, or its failure."""
    slot, query = asked
    try:
        if context.mind.is_council:
            answered: object = await think_as_part(context, interpreter, synthesis, number, asked)
        elif context.mind.is_duet:
            answered = await answer(context, interpreter, synthesis, number, asked)
        else:
            answered = await send(interpreter, context.mind.persona, slot, query, number)
        if not isinstance(answered, PartResult):
            raise ObjectError(f"{slot!r} of {context.mind.voice.name} answers no part but a {type(answered).__name__}")
        part = answered
    except ApprovalNeeded as error:
        return _failed_part(context, number, asked, error)
    except FATAL:
        raise
    except BatosError as error:
        part = _failed_part(context, number, asked, error)
    _tell(context, part, len(synthesis.queries))
    return part


def _failed_part(context: MindContext, number: int, asked: tuple[str, str], error: BatosError) -> PartResult:
    """Return a part without an answer, with the reason."""
    slot, query = asked
    if context.mind.has_personas:
        return PartResult(number, slot, slot.upper(), query, failure=error, persona=slot.upper())
    intent = intent_of(context.mind.persona, slot)
    name = slot if intent is None else intent.name
    return PartResult(number, slot, name, query, failure=error, persona=context.mind.voice.name)


def _tell(context: MindContext, part: PartResult, of: int) -> None:
    mind, slot = context.mind.name, part.slot
    path = f"{mind}/{slot}" if context.mind.is_council else questions.facet_path(mind, slot)
    told = MissionPartial(mission=context.mission.id, known=not part.open, of=of, path=path, persona=part.persona)
    if not part.is_mind:
        told["facet"] = slot
    context.io.events.emit(MISSION_PARTIAL, told)


# -- two voices: below a council two personas answer the same question, each in one call; their answers are joined


async def answer(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, number: int, asked: tuple[str, str]
) -> PartResult:
    """Return the answer of one of the two personas: one call in its own voice, of its own model, judged alone."""
    slot, query = asked
    within = council_mind(context, slot, query, synthesis.evidence)
    task = prompt.reflex_task(within.mind.voice, query)
    question = Question(questions.facet_path(context.mind.name, slot), task)
    spoken, _ = await infer(interpreter.in_voice(within), within, synthesis.evidence, question, decisions.PART)
    judged = await answers.judge_alone(
        MindAnswer(spoken.text, was_cut=spoken.was_cut), answers.ground_of(within, synthesis)
    )
    said, name = judged.answer, within.mind.voice.name
    return PartResult(
        number=number,
        slot=slot,
        name=name,
        query=query,
        answer=said.answer,
        citations=said.citations,
        is_known=said.is_known,
        found_nothing=bool(said.unanswered),
        was_cut=said.was_cut,
        persona=name,
        faults=judged.verdict.faults,
        gist=said.gist if context.mind.parts_vote else "",
    )


def pillars(persona: UvmObject, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (slot, name, inspiration) of each facet, as the decomposition's prompt lists them."""
    found = [(slot, intent_of(persona, slot)) for slot in slots]
    return [(slot, intent.name, intent.inspiration) for slot, intent in found if intent is not None]
