"""The arguments of the verbs that undo missions and bring them back: one strict model for each."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from batos.protocol.strict_model import Name, StrictModel
from batos.protocol.undo_documents import RedonePage, UndonePage
from batos.protocol.wire_verb import WireVerb


class UndoArgs(StrictModel):
    """Take a mission out of the mind with all that it left there: answer, memories, turn, methods, slots."""

    mission: Name = Field(description="The mission's id or its beginning; `last`, `last-1`.")
    cascade: bool = Field(default=False, description="Take later missions out too that build on it; else refused.")
    dry_run: bool = Field(default=False, description="Only tell what would go, with all that builds on it.")
    keep: list[Literal["methods", "memories", "slots"]] = Field(
        default=[], max_length=3, description="Kinds of traces that stay."
    )
    user: Name | None = Field(default=None, description="The owner of the mission; absent: any owner.")


class RedoArgs(StrictModel):
    """Bring an undone mission back as it was."""

    mission: Name | None = Field(default=None, description="The mission's id or its beginning; absent: the newest one.")
    cascade: bool = Field(default=False, description="Bring back all missions that were undone with it.")
    user: Name | None = Field(default=None, description="The owner of the mission; absent: any owner.")


UNDO: Final = WireVerb[UndoArgs, UndonePage]("undo", UndoArgs)
REDO: Final = WireVerb[RedoArgs, RedonePage]("redo", RedoArgs)
