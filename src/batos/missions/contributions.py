"""Folds a mission's contributions into the image: statistics are counted up, turns added to conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.image import forged, roots, wishes
from batos.image.publisher import Applier
from batos.image.roots import Root


def fold_statistics(root: Root, mission: str, payload: Any) -> None:
    """Add a mission's cost, and the density of its prompts for each model, to the statistics."""
    kept = root[roots.STATISTICS]
    missions = dict(kept.get("missions", {}))
    missions[payload["persona"]] = missions.get(payload["persona"], 0) + 1
    kept["missions"] = missions
    kept["calls"] = kept.get("calls", 0) + payload["calls"]
    measured = dict(kept.get("measured", {}))
    for model, (size, tokens) in payload["measured"].items():
        before = measured.get(model, (0, 0))
        measured[model] = (before[0] + size, before[1] + tokens)
    kept["measured"] = measured


def fold_turn(root: Root, mission: str, payload: Any) -> None:
    """Add the mission to its conversation as the newest turn. Another user's conversation is left alone."""
    user = roots.mission_record(root, mission).brief.value["user"]
    conversation = roots.conversation(root, payload["conversation"], user)
    if conversation.user == user:
        turns = conversation.turns
        turns[turns.maxKey() + 1 if turns else 1] = mission


APPLIERS: Mapping[str, Applier] = {
    "statistics": fold_statistics,
    "turn": fold_turn,
    forged.KIND: forged.fold,
    wishes.KIND: wishes.fold,
}
