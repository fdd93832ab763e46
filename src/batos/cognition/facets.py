"""Facets thinking apart: each intent is interpreted under its own prompt, all at once, and returns data."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from batos.cognition import decisions, prompt
from batos.cognition.asking import Question, infer
from batos.cognition.evidence import Evidence
from batos.cognition.gate import Quoted
from batos.cognition.running import PartResult, Running, Synthesis
from batos.errors import BatosError, ImageError, MissionFailed
from batos.objects.message import Interpreter, send
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, lookup


@dataclass(frozen=True, slots=True)
class SubQuery:
    """What one facet is asked."""

    slot: str
    intent: Intent
    text: str
    number: int


async def delegate(running: Running, interpreter: Interpreter, synthesis: Synthesis) -> tuple[PartResult, ...]:
    """Every facet's answer to its sub-query; a facet that failed is a part with its reason.

    Raises MissionFailed when more than half of them failed, and at once what no other part could mend.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_part(running, interpreter, number, slot, query))
                for number, (slot, query) in enumerate(synthesis.queries.items(), start=1)
            ]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    parts = tuple(task.result() for task in tasks)
    failures = [part.failure for part in parts if part.failure is not None]
    if 2 * len(failures) > len(parts):
        raise _quorum_missed(failures, len(parts))
    return parts


def _quorum_missed(failures: list[BatosError], parts: int) -> BatosError:
    """The common reason if there is one, since it carries the remedy; else how many failed and why the first did."""
    first = failures[0]
    if all(type(failure) is type(first) for failure in failures):
        return first
    return MissionFailed(f"{len(failures)} of {parts} facets failed; the first: {first}", remedy=first.remedy)


async def _part(running: Running, interpreter: Interpreter, number: int, slot: str, query: str) -> PartResult:
    name = facet_name(running.persona, slot)
    try:
        part: PartResult = await send(interpreter, running.persona, slot, query, number)
    except ImageError:
        raise
    except BatosError as error:
        part = PartResult(number, slot, name, query, failure=error)
    running.events.emit(
        "mission.partial", mission=running.id, path=path_of(running, slot), facet=slot, known=part.known
    )
    return part


async def interpret(interpreter: Interpreter, running: Running, evidence: Evidence, asked: SubQuery) -> PartResult:
    """Run a facet by its intent's text alone: it guides `infer_`, the thinking of its persona."""
    intent = asked.intent
    running.methods.append({"selector": asked.slot, "holder": running.voice.name, "as": "interpreted intent"})
    described = {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.text}
    question = Question(path_of(running, asked.slot), prompt.facet_task(running.voice, described, asked.text))
    if evidence.passages:
        cited, _ = await infer(interpreter, running, evidence, question, decisions.PART)
        citations = tuple(Quoted(each.document, each.quote) for each in cited.citations)
        return PartResult(asked.number, asked.slot, intent.name, asked.text, cited.answer, citations, cited.known)
    plain, _ = await infer(interpreter, running, evidence, question, decisions.PLAIN_PART)
    return PartResult(asked.number, asked.slot, intent.name, asked.text, plain.answer, (), plain.known)


def facet_name(persona: UvmObject, slot: str) -> str:
    """What a facet is called, for people and for the weave."""
    found = lookup(persona, slot)
    return found.value.name if found and isinstance(found.value, Intent) else slot


def path_of(running: Running, slot: str) -> str:
    """The sample path of a facet's call."""
    return f"{running.name}/delegating/{slot.removesuffix('_facet_')}#0"


def pillars(persona: UvmObject, slots: Mapping[str, str] | tuple[str, ...]) -> list[tuple[str, str, str]]:
    """(slot, name, inspiration) of each facet, as decomposition is told them."""
    found = [(slot, lookup(persona, slot)) for slot in slots]
    return [
        (slot, each.value.name, each.value.inspiration)
        for slot, each in found
        if each is not None and isinstance(each.value, Intent)
    ]
