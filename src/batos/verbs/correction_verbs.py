"""The verbs by which what is remembered is corrected: edit, retract, restore, pin, and folding into summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from batos.protocol.memory_documents import (
    CuratedPage,
    EditedPage,
    FoldedRegionLine,
    MemoryLine,
    PinnedPage,
    RestoredPage,
    RetractedPage,
    UnfoldedPage,
)
from batos.protocol.wire_messages import Asker, MemoryName, StrictModel
from batos.terminal.console import count_text
from batos.terminal.layout import plain, wrap
from batos.verbs.wire_verb import WireVerb


class CurateArgs(StrictModel):
    """Fold what nobody has recalled for long, or what says the same, into summaries; or bring back what one stands for.

    A model writes what nobody recalls in short, where one answers; only what the memories carry of it is kept. The
    texts go to an archive: `recall --all` and `--history` still find them, and --undo brings them back. The event
    `memory.folded` has each summary.
    """

    dry_run: bool = Field(default=False, description="Only tell what would be folded.")
    undo: str | None = Field(
        default=None, min_length=1, max_length=4_096, description="Bring back what this summary stands for."
    )
    cold_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days without a recall; absent: the setting `cold_days`."
    )
    limit: int = Field(default=100, ge=1, le=100_000, description="Most regions that are folded.")
    rule: bool = Field(default=False, description="Ask no model: a rule writes the summaries.")
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class _NamesMemories(StrictModel):
    """Memories, by name."""

    documents: list[MemoryName] = Field(
        min_length=1, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class MemoriesEditArgs(StrictModel):
    """Give a memory another TEXT; `-` reads it from stdin. The older text stays as marked history.

    The class of trust stays that of the older text.
    """

    document: MemoryName = Field(description="Its id, the beginning of it, or its source.")
    text: str = Field(min_length=1, max_length=200_000, description="The whole new text.")
    user: Asker = Field(default=None, description="The owner of the memory; absent: the server's own user.")


class MemoriesRetractArgs(StrictModel):
    """Take memories out of recall, named by ids or by their source; they stay as marked history.

    `batos memories restore` brings them back, with all that went with them.
    """

    documents: list[MemoryName] = Field(
        default_factory=list, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    source: MemoryName | None = Field(default=None, description="Or all that came from there.")
    cascade: bool = Field(default=False, description="Also answers, memories, methods and pins that came of them.")
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class MemoriesRestoreArgs(_NamesMemories):
    """Let memories be recalled again: retracted ones with all that went with them, edited ones with the old text."""

    alone: bool = Field(default=False, description="Without the answers, methods and pins that went with them.")


def edited_text(found: EditedPage) -> str:
    """Write the id of the new text, and that of the older one."""
    line = found["edited"]
    return f"Edited: {plain(line['title'])} ({line['document']}). The older text is history: {found['before']}."


def retracted_text(found: RetractedPage) -> str:
    """Write what is no longer recalled or used."""
    lines = [*_each("Retracted", found["retracted"]), *_behaviour("Out of use", found)]
    counts = [(found["answers"], "answer"), (found["pins"], "pin")]
    gone = ", ".join(count_text(number, what) for number, what in counts if number)
    return "\n".join([*lines, *([f"Also out of recall: {gone}."] if gone else [])]) or "Nothing was to be retracted."


def restored_text(found: RestoredPage) -> str:
    """Write what is recalled or used again."""
    return "\n".join([*_each("Recalled again", found["restored"]), *_behaviour("In use again", found)])


def pinned_text(found: PinnedPage) -> str:
    """Write which memories are pinned, or no longer are."""
    return "\n".join(_each("Pinned" if found["pinned"] else "No longer pinned", found["memories"]))


def _each(what: str, lines: Sequence[MemoryLine]) -> list[str]:
    return [f"{what}: {plain(each['title'])} ({each['document']})." for each in lines]


def _behaviour(what: str, found: RetractedPage | RestoredPage) -> list[str]:
    names = [*found["methods"], *(f"tools.{each}" for each in found["tools"])]
    return [f"{what}: {plain(each)}." for each in names]


#: Regions that are shown one by one, and the characters of a summary that are.
_TOLD, _GLANCE = 10, 300
_REASONS: Final = {"cold": "not recalled for long", "redundant": "say the same"}


def curated_text(found: CuratedPage) -> str:
    """Show each region that was folded, or would be, and how many parts that leaves."""
    regions = found["regions"]
    if not regions:
        return "Nothing to fold: all memories were recalled or remembered lately, and no two say the same."
    blocks = [_region_text(each) for each in regions[:_TOLD]]
    if len(regions) > _TOLD:
        blocks.append(f"And {count_text(len(regions) - _TOLD, 'more region')}; --json lists all.")
    documents = sum(len(each["documents"]) for each in regions)
    chunks, left = sum(each["chunks"] for each in regions), sum(each["left"] for each in regions)
    done = "would be folded" if found["dry_run"] else "folded"
    tail = f"{count_text(documents, 'document')} {done}: {count_text(chunks, 'part')} become {left}."
    more = " There are more regions: run it again, or raise --limit." if found["more"] else ""
    return "\n\n".join([*blocks, tail + more])


def outcome_text(told: CuratedPage | UnfoldedPage) -> str:
    """Write what was folded, or what is back."""
    return curated_text(told) if "regions" in told else unfolded_text(told)


def _region_text(region: FoldedRegionLine) -> str:
    name = f" ({region['summary']})" if region["summary"] else ""
    documents = count_text(len(region["documents"]), "document")
    head = f"{plain(region['title'])}{name}: {documents}, {_REASONS[region['reason']]}, by {region['written_by']}"
    words = " ".join(region["text"].split())
    return f"{head}\n{wrap(words if len(words) <= _GLANCE else f'{words[:_GLANCE]}…')}"


def unfolded_text(found: UnfoldedPage) -> str:
    """Write which documents are back."""
    lines = [f"Back: {plain(each['title'])} ({count_text(each['chunks'], 'part')})." for each in found["documents"]]
    return "\n".join([*lines, f"The summary {found['summary']} is gone."])


CURATE: Final = WireVerb("curate", CurateArgs, "curate --cold-after=COLD_DAYS", outcome_text)
MEMORIES_EDIT: Final = WireVerb("memories_edit", MemoriesEditArgs, "memories edit DOCUMENT TEXT", edited_text)
MEMORIES_RETRACT: Final = WireVerb(
    "memories_retract", MemoriesRetractArgs, "memories retract [DOCUMENTS...]", retracted_text
)
MEMORIES_RESTORE: Final = WireVerb(
    "memories_restore", MemoriesRestoreArgs, "memories restore DOCUMENTS...", restored_text
)
PIN: Final = WireVerb(
    "pin", _NamesMemories, "pin DOCUMENTS...", pinned_text,
    about="Let memories be recalled for every question of their user and scope, as quoted text.",
)  # fmt: skip
UNPIN: Final = WireVerb(
    "unpin", _NamesMemories, "unpin DOCUMENTS...", pinned_text,
    about="Let pinned memories be recalled like any other again.",
)  # fmt: skip
