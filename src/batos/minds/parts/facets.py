"""Names the facets of a persona, for people and for prompts."""

from __future__ import annotations

from collections.abc import Sequence

from batos.objects.prototype import UvmObject
from batos.records.intents import intent_of


def facet_name(persona: UvmObject, slot: str) -> str:
    """Return a facet's name for people and for the weave."""
    intent = intent_of(persona, slot)
    return slot if intent is None else intent.name


def pillars(persona: UvmObject, slots: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (slot, name, inspiration) of each facet, as the decomposition's prompt lists them."""
    found = [(slot, intent_of(persona, slot)) for slot in slots]
    return [(slot, intent.name, intent.inspiration) for slot, intent in found if intent is not None]
