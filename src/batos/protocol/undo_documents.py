"""The documents of undoing missions and of bringing them back, key by key."""

from __future__ import annotations

from typing import TypedDict


class UndoLine(TypedDict):
    """A mission that an undo takes out, with its traces; `because` tells on which other one it depends, and how.

    `approvals` are open questions to a person, which nobody needs to answer any more. `effects` on the world
    happened, or may have, and stay. `turn` is its position in its conversation, 0 if it is none.
    """

    mission: str
    text: str
    because: str
    memories: list[str]
    methods: list[str]
    tools: list[str]
    slots: list[str]
    approvals: list[str]
    effects: list[str]
    turn: int


class UndonePage(TypedDict):
    """The missions that an undo took out, or would take out, the newest first.

    `kept` names what stays although it is theirs. `prompt` is the question of the mission that was named.
    """

    mission: str
    dry_run: bool
    undone: list[UndoLine]
    kept: list[str]
    prompt: str


class RedonePage(TypedDict):
    """The missions that came back, the oldest first; `left` tells what was changed meanwhile and stays as it is."""

    mission: str
    redone: list[str]
    left: list[str]
