"""The arguments of the verbs of the image's care: one strict model for each."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from batos.protocol.care_documents import ErasedPage, PackedPage
from batos.protocol.strict_model import Name, StrictModel
from batos.verbs.wire_verb import WireVerb


class PackArgs(StrictModel):
    """Take away states of image and journal that are older than the kept history."""

    keep_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days of history that stay; absent: those of the settings."
    )


class EraseArgs(StrictModel):
    """Erase something from the mind for good: from history, journal, files, indexes and logs too; digests stay."""

    target: str = Field(
        min_length=1, max_length=65_536,
        description="The id of a mission, conversation or memory, a source, an object, OBJECT.SLOT, or words.",
    )  # fmt: skip
    words: bool = Field(default=False, description="The target is words, also where it could be a name.")
    cascade: bool = Field(default=False, description="Erase missions too that build on it; else refused.")
    dry_run: bool = Field(default=False, description="Only tell what would go, with all that builds on it.")
    alone: bool = Field(default=False, description="No words: only what a name means. A guest's request is so.")
    user: Name | None = Field(default=None, description="The user whose things go; absent: everybody's.")


PACK: Final = WireVerb[PackArgs, PackedPage]("pack", PackArgs, governs=True)
ERASE: Final = WireVerb[EraseArgs, ErasedPage]("erase", EraseArgs)
