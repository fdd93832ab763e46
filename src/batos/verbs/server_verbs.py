"""The verbs of the server, of what it stands on, and of the image's care."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from batos.protocol.server_documents import (
    AdapterChoice,
    ErasedPage,
    GenesisDocument,
    HelloDocument,
    PackedPage,
    PlannedGenesis,
    StatusDocument,
    StoredSizes,
)
from batos.protocol.wire_messages import Name, StrictModel
from batos.terminal.console import count_text, moment_text, size
from batos.terminal.layout import cut, plain
from batos.verbs.wire_verb import Noun, WireVerb

ADAPTERS_NOUN: Final = Noun("adapters", "List, check and choose the adapters that personas think with.", default="list")


class StatusArgs(StrictModel):
    """The status of the server, in one screen."""

    user: Name | None = Field(default=None, description="Show only this user's missions; absent: everybody's.")
    rates: bool = Field(default=False, description="Add the rates of today, of seven days and of all, as `rates`.")


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


HELLO: Final = WireVerb[StrictModel, HelloDocument](
    "hello", StrictModel,
    about="Ask what the server is, and what it accepts.",
)  # fmt: skip
STATUS: Final = WireVerb[StatusArgs, StatusDocument]("status", StatusArgs)
GENESIS: Final = WireVerb[GenesisArgs, GenesisDocument | PlannedGenesis]("genesis", GenesisArgs, governs=True)
ADAPTERS_USE: Final = WireVerb("adapters_use", AdaptersUseArgs, "adapters use PERSONA NAME", chosen_text, governs=True)


#: Places that are told one by one.
_TOLD: Final = 50
#: Characters of what was named.
_LINE: Final = 60
#: The name of one thing of a kind.
_ONE: Final = {"memories": "memory", "conversations": "turns", "slots": "slot", "methods": "method"}


class PackArgs(StrictModel):
    """Free the space of past states that are older than the kept history.

    Nothing of the present goes, and no state that an open mission, a dream or a question to the past may still read,
    nor one of the last hour. Afterwards `--as-of` goes back no further; undo and redo work as before. A server packs by
    itself once a day.
    """

    keep_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days of history that stay; absent: `history_days` of the settings."
    )


def packed_text(told: PackedPage) -> str:
    """Tell how far back the mind goes now, and what that freed."""
    freed = _sum(told["before"]) - _sum(told["after"])
    lines = [f"Past states are kept from {moment_text(told['until'])} on; {size(max(0, freed))} freed."]
    if told["held_by"]:
        lines.append(f"{told['held_by']} has not ended, and may still read what is newer.")
    if told["erased"]:
        lines.append(f"The words of {count_text(told['erased'], 'call')} are erased: their missions ended long ago.")
    now = told["after"]
    lines.append(f"image {size(now['bytes'])}, journal {size(now['journal_bytes'])}, blobs {size(now['blob_bytes'])}")
    return "\n".join(lines)


def _sum(sizes: StoredSizes) -> int:
    return sizes["bytes"] + sizes["journal_bytes"] + sizes["blob_bytes"]


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


def erased_text(told: ErasedPage) -> str:
    """List what was erased, or would be, and what may still have the words, with the remedy of each."""
    target = cut(" ".join(plain(told["target"]).split()), _LINE)
    lines = [f"{'would go' if told['dry_run'] else 'erased'}   {told['kind']} {target}"]
    lines += [f"  mission  {name}: {plain(why)}" for name, why in told["missions"].items()]
    for kind in ("memories", "conversations", "slots", "methods"):
        lines += [f"  {_ONE[kind].ljust(8)} {plain(each)}" for each in told[kind]]
    left = [
        line
        for each in told["left"]
        for line in (
            f"left     {plain(each['place'])}: {plain(each['what'])}",
            f"    remedy: {plain(each['remedy'])}",
        )
    ]
    if told["dry_run"]:
        return "\n".join([*lines, *left, "Nothing is changed. Calls and lines of logs that quote it would go too."])
    counts = ((told["calls"], "call"), (told["files"], "file"), (told["objects"], "object"), (told["lines"], "line"))
    lines.append(f"  and      {', '.join(count_text(*each) for each in counts)}. The history before is cut.")
    lines += [f"  found    {plain(each)}" for each in told["found"][:_TOLD]]
    return "\n".join([*lines, *left])


PACK: Final = WireVerb("pack", PackArgs, "pack --keep=KEEP_DAYS", packed_text, governs=True)
ERASE: Final = WireVerb[EraseArgs, ErasedPage]("erase", EraseArgs)
