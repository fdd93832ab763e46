"""A mind's parts: its facets, two voices, or a council's personas; they think, return data, and are joined here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from batos.approvals.reasons import combine_reasons
from batos.minds import prompt
from batos.minds.calls import answers, decisions, sample_paths
from batos.minds.calls.questions import WORDLESS, Question, infer
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.parts import council
from batos.minds.results import Enough, MindAnswer, PartResult, Synthesis
from batos.objects.message import send
from batos.objects.prototype import UvmObject, lookup
from batos.protocol.errors import (
    ApprovalNeeded,
    BatosError,
    ImageError,
    InternalError,
    MissionFailed,
    ObjectError,
    Refused,
    TimedOut,
)
from batos.protocol.event_payloads import MISSION_PARTIAL, MissionPartial
from batos.records.intents import intent_of

T = TypeVar("T")

#: Errors that no other part could mend: they end the mission, however many parts answered.
FATAL = (ImageError, InternalError, Refused, TimedOut, ApprovalNeeded)


def slots_of(context: MindContext) -> tuple[str, ...]:
    """Return the slots of a mind's parts in their order: `guide_facet_`, or `brick` for personas."""
    if context.mind.effort == "reflex":
        return ()
    if context.mind.has_personas:
        return council.members(context)
    found = lookup(context.mind.persona, "facets")
    return tuple(found.value) if found else ()


def describe(context: MindContext, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (slot, name, inspiration) of each part, as the decomposition's prompt lists them."""
    if context.mind.is_council:
        return council.describe(context, slots)
    return pillars(context.mind.persona, slots)


async def delegate(
    context: MindContext, interpreter: MindInterpreter, synthesis: Synthesis, enough: Enough | None = None
) -> tuple[PartResult, ...]:
    """Ask every part its sub-query, all at once, and return the results; a failed part has its reason.

    With `enough` parts are asked one after another until `enough` returns True.

    Raises: MissionFailed, or the reason that all have in common: more than half of the parts failed, but for words of
    the model that were of no use. ApprovalNeeded: some parts wait for a person; the others finished first, so that
    their paid answers are there later. Errors that no other part could mend are raised at once.
    """
    asked = enumerate(synthesis.queries.items(), start=1)
    work = [_part(context, interpreter, synthesis, number, query) for number, query in asked]
    parts = await _together(work) if enough is None else await _in_turn(work, enough)
    failures = [part.failure for part in parts if part.failure is not None]
    needed = [failure for failure in failures if isinstance(failure, ApprovalNeeded)]
    if needed:
        raise combine_reasons(needed)
    failures = [failure for failure in failures if not isinstance(failure, WORDLESS)]
    if 2 * len(failures) > len(parts):
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
            answered: object = await council.think(context, interpreter, synthesis, number, asked)
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
    path = f"{mind}/{slot}" if context.mind.is_council else sample_paths.facet(mind, slot)
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
    within = council.mind(context, slot, query, synthesis.evidence)
    task = prompt.reflex_task(within.mind.voice, query)
    question = Question(sample_paths.facet(context.mind.name, slot), task)
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
