"""Grants and effects as doors show them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from batos.agency.granting import grant_document
from batos.agency.payloads import describe
from batos.agency.records import capabilities, staged_effects
from batos.agency.records.staged_effects import Effect
from batos.image import ownership
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.protocol.effect_documents import EffectDocument, GrantDocument


def list_grants(root: Root, user: str | None = None) -> list[GrantDocument]:
    """Return all grants (of a user's), by name."""
    return [grant_document(each) for each in capabilities.list_all(root, user)]


def list_effects(root: Root, most: int, mission: str | None = None, user: str | None = None) -> list[EffectDocument]:
    """Return the newest effects, the newest first; optionally of a mission, or of a user's missions."""
    found: Iterable[Effect] = reversed(list(staged_effects.list_all(root, mission)))
    mine = (each for each in found if user is None or ownership.is_asked_by(root, [each["mission"]], user))
    return [effect_document(root, each) for each in islice(mine, most)]


def effect_document(root: Root, effect: Effect) -> EffectDocument:
    """Return an effect for doors."""
    waits_by = capabilities.find_of(root, effect) if effect["state"] in staged_effects.WAITING else None
    return {
        "effect": effect["effect"], "mission": effect["mission"], "lineage": effect["lineage"],
        "grant": effect["grant"], "operation": effect["operation"],
        "what": describe(effect["operation"], effect["payload"]), "key": effect["key"],
        "fingerprint": effect["fingerprint"], "state": effect["state"], "attempts": effect["attempts"],
        "at": effect["at"], "outcome": effect["outcome"],
        "host": "" if waits_by is None else own_slots(waits_by).get("host", ""),
    }  # fmt: skip
