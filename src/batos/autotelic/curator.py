"""The curator: decides which memories a summary stands for from now on, and has them folded region by region."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batos.events import Events
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.memory.curation import recall_counts
from batos.memory.curation.fold_store import FoldStore, ReadRegion, WrittenSummary
from batos.memory.curation.recall_counts import RecallTally
from batos.protocol.event_payloads import MEMORY_FOLDED, MemoryFolded
from batos.protocol.memory_documents import CuratedPage, FoldedRegionLine, UnfoldedPage

#: Hears of each region that was folded.
OnFolded: TypeAlias = Callable[[MemoryFolded], None]


@dataclass(frozen=True, slots=True)
class CurationWish:
    """The memories to look at: of a user (None: of all), cold after so many days, at most so many regions."""

    user: str | None
    cold_days: float
    most: int
    dry_run: bool = False
    by_rule: bool = False


class SummaryWriter(Protocol):
    """Writes the summaries of cold regions in the place of a rule."""

    async def can_write(self) -> bool:
        """Test if it would write one now."""
        ...

    async def write(self, read: ReadRegion, by_rule: WrittenSummary) -> WrittenSummary | None:
        """Return the summary of a region; None if the rule's has to do."""
        ...


class Curator:
    """Curates what one image remembers, one run at a time. A run that is killed leaves whole regions."""

    def __init__(
        self,
        image: LivingImage,
        folds: FoldStore,
        clock: Callable[[], datetime],
        events: Events,
        writer: SummaryWriter | None = None,
    ) -> None:
        self._image = image
        self._folds = folds
        self._clock = clock
        self._events = events
        self._writer = writer
        self._tally = RecallTally()
        self._running = asyncio.Lock()

    def note_recalled(self, names: Iterable[str]) -> None:
        """Note that a person has found memories: they are not cold. `write_recalls` writes this later."""
        self._tally.note(names)

    async def curate(self, wish: CurationWish, on_folded: OnFolded = lambda line: None) -> CuratedPage:
        """Fold the regions that are redundant or cold, each in a commit; tell those that were, or would be."""
        async with self._running:
            await self.write_recalls()
            before = self._clock() - timedelta(days=wish.cold_days)
            regions = self._folds.survey(wish.user, before)
            writer = None if wish.by_rule or wish.dry_run else self._writer
            if writer is not None and not await writer.can_write():
                writer = None
            lines: list[FoldedRegionLine] = []
            while (found := await asyncio.to_thread(next, regions, None)) is not None:
                if len(lines) == wish.most:
                    break
                line = await self._look(found) if wish.dry_run else await self._fold(*found, writer)
                if line is not None:
                    lines.append(line)
                    if not wish.dry_run:
                        self._tell(line, on_folded)
            if not wish.dry_run:
                await self._folds.tidy()
        return {"regions": lines, "dry_run": wish.dry_run, "more": found is not None}

    async def _look(self, found: tuple[ReadRegion, WrittenSummary]) -> FoldedRegionLine | None:
        return await asyncio.to_thread(self._folds.would_fold, *found)

    async def _fold(
        self, read: ReadRegion, by_rule: WrittenSummary, writer: SummaryWriter | None
    ) -> FoldedRegionLine | None:
        """Fold a region: what says the same by the rule, which leaves nothing out, what is cold by the writer."""
        if writer is not None and read.region.reason == "cold":
            written = await writer.write(read, by_rule)
            line = None if written is None else await self._folds.fold(read, written)
            if line is not None:
                return line
        return await self._folds.fold(read, by_rule)

    def _tell(self, line: FoldedRegionLine, on_folded: OnFolded) -> None:
        told = MemoryFolded(
            summary=line["summary"],
            reason=line["reason"],
            documents=len(line["documents"]),
            chunks=line["chunks"],
            left=line["left"],
            written_by=line["written_by"],
        )
        self._events.emit(MEMORY_FOLDED, told)
        on_folded(told)

    async def undo(self, named: str, user: str | None) -> UnfoldedPage:
        """Bring back what a summary stands for, byte for byte. Raises: NotFound."""
        async with self._running:
            return await self._folds.unfold(named, user)

    async def write_recalls(self) -> None:
        """Write the recalls that were noted since the last time."""
        noted, at = self._tally.take(), iso(self._clock())
        if noted and self._image.refusing is None:
            await self._image.shared.apply(lambda root: recall_counts.count_recalls(root, noted, at))
