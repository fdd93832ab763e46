"""The arguments of the verbs of grants and effects: one strict model for each."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from batos.protocol.effect_documents import AddedGrant, EffectDocument, EffectList, GrantList, RevokedGrant
from batos.protocol.strict_model import Name, StrictModel
from batos.protocol.wire_verb import WireVerb


class GrantsArgs(StrictModel):
    """List the grants: what missions may be allowed to do in the world."""

    user: Name | None = Field(default=None, description="Only those of this user.")


class GrantsAddArgs(StrictModel):
    """Let missions that name the grant act on a folder, or on an address of the server's machine."""

    kind: Literal["file", "http"] = Field(description="`file`: append to files; `http`: post to a program.")
    target: str = Field(min_length=1, max_length=4_096, description="The whole path of a folder, or an http address.")
    name: Name | None = Field(default=None, description="The grant's name; absent: made of the target's.")
    blind: bool = Field(default=False, description="The program does not know keys: after a crash a person is asked.")
    user: Name | None = Field(default=None, description="The user whose missions may name it; absent: the server's.")


class GrantsRevokeArgs(StrictModel):
    """Take a grant back: what was staged under it and is not begun fails."""

    name: Name = Field(description="The grant's name.")
    user: Name | None = Field(default=None, description="Only if it is this user's.")


class EffectsArgs(StrictModel):
    """List effects on the world: staged, released, failed and unknown ones, the newest first."""

    mission: Name | None = Field(default=None, description="Only those of this mission; `last`, `last-1`.")
    limit: int = Field(default=50, ge=1, le=10_000, description="Most effects in the list.")
    user: Name | None = Field(default=None, description="Only those of this user's missions.")


class EffectsSettleArgs(StrictModel):
    """Say of an effect that is unknown whether it happened."""

    effect: Name = Field(description="The effect's id.")
    outcome: Literal["done", "undone"] = Field(description="`done`: it happened; `undone`: it did not.")
    user: Name | None = Field(default=None, description="The user who answers; absent: the server's own user.")


GRANTS: Final = WireVerb[GrantsArgs, GrantList]("grants", GrantsArgs)
GRANTS_ADD: Final = WireVerb[GrantsAddArgs, AddedGrant]("grants_add", GrantsAddArgs)
GRANTS_REVOKE: Final = WireVerb[GrantsRevokeArgs, RevokedGrant]("grants_revoke", GrantsRevokeArgs)
EFFECTS: Final = WireVerb[EffectsArgs, EffectList]("effects", EffectsArgs)
EFFECTS_SETTLE: Final = WireVerb[EffectsSettleArgs, EffectDocument]("effects_settle", EffectsSettleArgs)
