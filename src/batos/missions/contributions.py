"""Folding of a mission's contributions by the publisher: statistics are added up, turns appended to conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.agency.records import staged_effects
from batos.conversations import conversations
from batos.image import roots
from batos.image.publisher import Applier
from batos.image.roots import Root
from batos.memory.exchanges import MEMORABLE
from batos.records import tool_declarations, wishes


def fold_statistics(root: Root, mission: str, payload: Any) -> None:
    """Add a mission's calls, and the measured tokens of its prompts, to the statistics."""
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
    """Append the mission to its conversation as the newest turn, unless the conversation belongs to another user."""
    user = roots.mission_record(root, mission).brief.value["user"]
    conversation = roots.conversation(root, payload["conversation"], user)
    if conversation.user == user:
        conversation.turns[conversations.next_position(conversation)] = mission


def fold_memorable(root: Root, mission: str, payload: Any) -> None:
    """Note that the mission is to be remembered: it is written with others, in a commit of the catalogue's."""
    root[roots.UNREMEMBERED].insert(mission)


APPLIERS: Mapping[str, Applier] = {
    "statistics": fold_statistics,
    "turn": fold_turn,
    MEMORABLE: fold_memorable,
    tool_declarations.KIND: tool_declarations.fold,
    wishes.KIND: wishes.fold,
    staged_effects.KIND: staged_effects.fold,
}
