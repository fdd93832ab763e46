"""Facets: an intent is interpreted under a prompt of its own, by its persona's model, and returns data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batos.gate.citing import stands
from batos.image.intents import intent_of
from batos.memory.evidence import Evidence
from batos.minds import prompt
from batos.minds.calls import decisions, sample_paths
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.results import PartResult
from batos.objects.message import Interpreter
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject


@dataclass(frozen=True, slots=True)
class SubQuery:
    """What one facet is asked; `number` counts from 1. `path` is its call's place if it is not a part of its mind."""

    slot: str
    intent: Intent
    text: str
    number: int
    path: str = ""


async def interpret(interpreter: Interpreter, context: MindContext, evidence: Evidence, asked: SubQuery) -> PartResult:
    """Run a facet by its intent's text alone: it guides `infer_`, the thinking of its persona.

    Citations that are not word for word in their documents are dropped here: the weave would carry them on.
    """
    intent = asked.intent
    described = {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.text}
    path = asked.path or sample_paths.facet(context.mind.name, asked.slot)
    question = Question(path, prompt.facet_task(context.mind.voice, described, asked.text))
    votes = context.mind.parts_vote
    decision = decisions.part(bool(evidence.passages), votes=votes)
    value, _ = await infer(interpreter, context, evidence, question, decision)
    citations = tuple(each for each in decisions.quoted(value) if stands(each, evidence))
    return PartResult(
        number=asked.number,
        slot=asked.slot,
        name=intent.name,
        query=asked.text,
        answer=value.answer,
        citations=citations,
        known=value.known,
        persona=context.mind.voice.name,
        gist=value.gist.strip() if votes else "",
    )


def facet_name(persona: UvmObject, slot: str) -> str:
    """What a facet is called, for people and for the weave."""
    intent = intent_of(persona, slot)
    return slot if intent is None else intent.name


def pillars(persona: UvmObject, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """(slot, name, inspiration) of each facet, as decomposition is told them."""
    found = [(slot, intent_of(persona, slot)) for slot in slots]
    return [(slot, intent.name, intent.inspiration) for slot, intent in found if intent is not None]
