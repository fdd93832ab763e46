"""The verbs of the server and of what it stands on: hello, status, genesis, the choice of adapters."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from batos.protocol.genesis_documents import GenesisDocument
from batos.protocol.server_documents import AdapterChoice, HelloDocument, PlannedGenesis, StatusDocument
from batos.protocol.strict_model import Name, StrictModel
from batos.verbs.wire_verb import WireVerb


class HelloArgs(StrictModel):
    """Ask what the server is, and what it accepts."""


class StatusArgs(StrictModel):
    """The status of the server, in one screen."""

    user: Name | None = Field(default=None, description="Show only this user's missions; absent: everybody's.")


class GenesisArgs(StrictModel):
    """Make models and image match codex and adapters."""

    plan: bool = Field(default=False, description="Only report what would be done.")
    prune: bool = Field(
        default=False, description="Also delete models that this image made and no persona uses any more."
    )


class AdaptersUseArgs(StrictModel):
    """Choose the adapter that a persona thinks with."""

    persona: Name = Field(description="The persona whose adapter is chosen.")
    name: Name = Field(description="The name of its adapter, or `none`.")


HELLO: Final = WireVerb[HelloArgs, HelloDocument]("hello", HelloArgs)
STATUS: Final = WireVerb[StatusArgs, StatusDocument]("status", StatusArgs)
GENESIS: Final = WireVerb[GenesisArgs, GenesisDocument | PlannedGenesis]("genesis", GenesisArgs, governs=True)
ADAPTERS_USE: Final = WireVerb[AdaptersUseArgs, AdapterChoice]("adapters_use", AdaptersUseArgs, governs=True)
