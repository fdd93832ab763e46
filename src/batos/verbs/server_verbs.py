"""The verbs of the server and of what it stands on: hello, status, genesis, the choice of adapters."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from batos.protocol.genesis_documents import GenesisDocument
from batos.protocol.server_documents import AdapterChoice, HelloDocument, PlannedGenesis, StatusDocument
from batos.protocol.strict_model import Name, StrictModel
from batos.verbs.wire_verb import Noun, WireVerb

ADAPTERS_NOUN: Final = Noun("adapters", "List, check and choose the adapters that personas think with.", default="list")


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
    model: Name | None = Field(
        default=None, description="From now on the model of every persona that names none, as `ollama list` shows it."
    )


class AdaptersUseArgs(StrictModel):
    """Choose the adapter that a persona thinks with from its next mission on, or `none` for its bare base."""

    persona: Name = Field(description="The persona whose adapter is chosen.")
    name: Name = Field(description="The name of its adapter, or `none`.")


def chosen_text(told: AdapterChoice) -> str:
    """Write which adapter a persona thinks with, and what is to be known of that."""
    said = "its bare base" if told["adapter"] is None else f"the adapter {told['adapter']}"
    when = "from its next mission on" if told["changed"] else "already"
    return "\n  ".join([f"{told['persona']} thinks with {said} {when}.", *told["notes"]])


HELLO: Final = WireVerb[HelloArgs, HelloDocument]("hello", HelloArgs)
STATUS: Final = WireVerb[StatusArgs, StatusDocument]("status", StatusArgs)
GENESIS: Final = WireVerb[GenesisArgs, GenesisDocument | PlannedGenesis]("genesis", GenesisArgs, governs=True)
ADAPTERS_USE: Final = WireVerb("adapters_use", AdaptersUseArgs, "adapters use PERSONA NAME", chosen_text, governs=True)
