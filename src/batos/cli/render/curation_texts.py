"""The texts on memories that were folded: the summaries, what each stands for, and what came back."""

from __future__ import annotations

from typing import Final

from batos.protocol.memory_documents import CuratedPage, FoldedRegionLine, UnfoldedPage
from batos.terminal.console import count_text
from batos.terminal.layout import plain, wrap

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


def _region_text(region: FoldedRegionLine) -> str:
    name = f" ({region['summary']})" if region["summary"] else ""
    documents = count_text(len(region["documents"]), "document")
    head = f"{plain(region['title'])}{name}: {documents}, {_REASONS[region['reason']]}, by {region['written_by']}"
    words = " ".join(region["text"].split())
    return f"{head}\n{wrap(words if len(words) <= _GLANCE else f'{words[:_GLANCE]}…')}"


def unfolded_text(found: UnfoldedPage) -> str:
    """Tell which documents are back."""
    lines = [f"Back: {plain(each['title'])} ({count_text(each['chunks'], 'part')})." for each in found["documents"]]
    return "\n".join([*lines, f"The summary {found['summary']} is gone."])
