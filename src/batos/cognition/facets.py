"""Facets thinking apart: each intent is interpreted under its own prompt, all at once, and returns data."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from batos.cognition import decisions, prompt
from batos.cognition.asking import Question, infer
from batos.cognition.citing import stands
from batos.cognition.evidence import Evidence
from batos.cognition.running import PartResult, Running, Synthesis
from batos.errors import BatosError, ImageError, InternalError, MissionFailed, ObjectError, Refused, TimedOut
from batos.objects.message import Interpreter, send
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, lookup

T = TypeVar("T")

#: What no other part could mend: the mission ends with it, however many parts answered.
FATAL = (ImageError, InternalError, Refused, TimedOut)


@dataclass(frozen=True, slots=True)
class SubQuery:
    """What one facet is asked; `number` counts from 1."""

    slot: str
    intent: Intent
    text: str
    number: int


async def delegate(running: Running, interpreter: Interpreter, synthesis: Synthesis) -> tuple[PartResult, ...]:
    """Every facet's answer to its sub-query; a facet that failed is a part with its reason.

    Raises MissionFailed, or the reason that they have in common, when more than half of them failed; and at once
    what no other part could mend.
    """
    asked = enumerate(synthesis.queries.items(), start=1)
    parts = await _together([_part(running, interpreter, number, slot, query) for number, (slot, query) in asked])
    failures = [part.failure for part in parts if part.failure is not None]
    if 2 * len(failures) > len(parts):
        raise _quorum_missed(failures, len(parts))
    return tuple(parts)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Their results in order; the first that raises ends the others, and its error is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


def _quorum_missed(failures: Sequence[BatosError], parts: int) -> BatosError:
    """The common reason if there is one, since it carries the remedy; else how many failed and why the first did."""
    first = failures[0]
    if all(type(failure) is type(first) for failure in failures):
        return first
    return MissionFailed(f"{len(failures)} of {parts} facets failed; the first: {first}", remedy=first.remedy)


async def _part(running: Running, interpreter: Interpreter, number: int, slot: str, query: str) -> PartResult:
    try:
        part = await send(interpreter, running.persona, slot, query, number)
        if not isinstance(part, PartResult):
            raise ObjectError(f"{slot!r} of {running.voice.name} answers no part but a {type(part).__name__}")
    except FATAL:
        raise
    except BatosError as error:
        part = PartResult(number, slot, facet_name(running.persona, slot), query, failure=error)
    path = path_of(running, slot)
    running.events.emit("mission.partial", mission=running.id, path=path, facet=slot, known=not part.open)
    return part


async def interpret(interpreter: Interpreter, running: Running, evidence: Evidence, asked: SubQuery) -> PartResult:
    """Run a facet by its intent's text alone: it guides `infer_`, the thinking of its persona.

    Citations that are not word for word in their documents are dropped here: the weave would carry them on.
    """
    intent = asked.intent
    described = {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.text}
    question = Question(path_of(running, asked.slot), prompt.facet_task(running.voice, described, asked.text))
    decision = decisions.part(bool(evidence.passages))
    value, _ = await infer(interpreter, running, evidence, question, decision)
    citations = tuple(each for each in decisions.quoted(value) if stands(each, evidence))
    return PartResult(asked.number, asked.slot, intent.name, asked.text, value.answer, citations, value.known)


def facet_name(persona: UvmObject, slot: str) -> str:
    """What a facet is called, for people and for the weave."""
    found = lookup(persona, slot)
    return found.value.name if found and isinstance(found.value, Intent) else slot


def path_of(running: Running, slot: str) -> str:
    """The sample path of a facet's call."""
    return f"{running.name}/delegating/{slot.removesuffix('_facet_')}#0"


def pillars(persona: UvmObject, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """(slot, name, inspiration) of each facet, as decomposition is told them."""
    found = [(slot, lookup(persona, slot)) for slot in slots]
    return [
        (slot, each.value.name, each.value.inspiration)
        for slot, each in found
        if each is not None and isinstance(each.value, Intent)
    ]
