"""The arguments of the verbs of dreams: one strict model for each."""

from __future__ import annotations

from typing import Final

from pydantic import Field, JsonValue

from batos.protocol.dream_documents import DreamDiff, DreamLine, DreamList
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.strict_model import Name, StrictModel
from batos.verbs.wire_verb import WireVerb


class DreamNewArgs(StrictModel):
    """A question that is answered in a copy of the mind, which is kept until it is promoted or dropped."""

    brief: dict[str, JsonValue] = Field(description="As that of `submit`; its methods are made in the copy.")
    follow: bool = Field(default=True, description="Send its events, then its end; a dream is always waited for.")
    user: Name | None = Field(default=None, description="Only this user's files may be named; absent: all.")


class ReplayArgs(StrictModel):
    """A mission that is asked again in a copy of the mind as it saw it, with another model or codex."""

    mission: Name = Field(description="The mission's id or its beginning; `last`, `last-1`.")
    model: Name | None = Field(default=None, description="The model of every persona, one that Ollama has.")
    codex: dict[str, str] | None = Field(
        default=None, max_length=32, description="The files of another codex: name to text."
    )
    follow: bool = Field(default=True, description="Send its events, then its end; a replay is always waited for.")
    user: Name | None = Field(default=None, description="The owner of the mission; absent: any owner.")


class DreamListArgs(StrictModel):
    """The newest dreams, a line each."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most dreams in the list.")
    user: Name | None = Field(default=None, description="Only those of this user.")


class DreamArgs(StrictModel):
    """A dream by the id of its mission."""

    dream: Name = Field(description="The id of its mission or the beginning of it; `last`, `last-1`.")
    user: Name | None = Field(default=None, description="Only if it is this user's.")


class DreamDiffArgs(DreamArgs):
    """All that a dream would change in the mind as it is now."""


class DreamPromoteArgs(DreamArgs):
    """Make a dream part of the mind: its mission, slots and methods, and what it contributes; or none of it."""


class DreamDropArgs(DreamArgs):
    """Throw a dream away."""


DREAM_NEW: Final = WireVerb[DreamNewArgs, MissionDocument]("dream_new", DreamNewArgs)
DREAM_LIST: Final = WireVerb[DreamListArgs, DreamList]("dream_list", DreamListArgs)
DREAM_DIFF: Final = WireVerb[DreamDiffArgs, DreamDiff]("dream_diff", DreamDiffArgs)
DREAM_PROMOTE: Final = WireVerb[DreamPromoteArgs, MissionDocument]("dream_promote", DreamPromoteArgs)
DREAM_DROP: Final = WireVerb[DreamDropArgs, DreamLine]("dream_drop", DreamDropArgs)
REPLAY: Final = WireVerb[ReplayArgs, MissionDocument]("replay", ReplayArgs)
