"""Looks for regions of memories that may be folded, folds them one by one, and brings them back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

import numpy as np

from batos.image import roots
from batos.image.ids import begun_at, iso
from batos.image.image import LivingImage
from batos.image.records import Segment
from batos.image.roots import Root
from batos.memory import freed_memory, region_summaries, regions
from batos.memory.claims.adjudication import marked_text
from batos.memory.document_store import DocumentStore
from batos.memory.indexes import kinds, vectors
from batos.memory.indexes.postings import Entry
from batos.memory.records import memories_set_aside, memory_archives, memory_records, memory_segments
from batos.memory.records.memories_set_aside import FoldedRegion
from batos.memory.records.memory_archives import ArchivedPart, Parts
from batos.memory.records.memory_claims import ClaimMark
from batos.memory.records.memory_records import ChunkRange
from batos.memory.records.memory_segments import VECTORS, NewSegment, trees_of
from batos.memory.region_summaries import (
    FoldedMemory,
    FoldedText,
    MadeSummary,
    SummaryLine,
    index_summary,
    make_summary,
)
from batos.memory.regions import FoldCandidate, Region, cold_regions, is_worth, redundant_regions, sketch
from batos.memory.search.chunk_search import ChunkSearch
from batos.memory.search.recollection import line_of
from batos.objects.prototype import own_slots
from batos.protocol.memory_documents import FoldedRegionLine, MemoryLine, UnfoldedPage

#: The share of all parts that may be left in segments after they were archived, before these are written anew.
MOST_STALE = 0.1


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """The lines of a summary, who wrote them, and the mission in which a model did ("" for none)."""

    lines: Sequence[SummaryLine]
    written_by: Literal["rule", "model"] = "rule"
    mission: str = ""


@dataclass(frozen=True, slots=True)
class ReadRegion:
    """A region as it is read from the image: its memories, their lines, texts and parts."""

    region: Region
    memories: tuple[FoldedMemory, ...]
    lines: tuple[MemoryLine, ...]
    texts: tuple[FoldedText, ...]
    parts: Parts

    def by_rule(self) -> WrittenSummary:
        """Return the summary that a rule writes of it; without lines, if the region is not worth one."""
        write = region_summaries.distinct if self.region.reason == "redundant" else region_summaries.central
        return WrittenSummary(write(self.texts))


class FoldStore:
    """Folds regions of what an image remembers, each in a commit of its own, and unfolds them."""

    def __init__(
        self, image: LivingImage, store: DocumentStore, search: ChunkSearch, clock: Callable[[], datetime]
    ) -> None:
        self._image = image
        self._store = store
        self._search = search
        self._clock = clock

    # -- looking

    def survey(self, user: str | None, before: datetime) -> Iterator[tuple[ReadRegion, WrittenSummary]]:
        """Yield the regions that are worth to be folded, each with the summary of a rule.

        First those that say the same, then those that nobody has recalled since a moment. Each is read when it is asked
        for.
        """
        with self._image.snapshot() as root:
            candidates = list(_candidates(root, user))
            segments = self._search.word_segments(root)
        firsts = np.array([each.first for each in candidates], np.int64)
        lasts = np.array([each.row.last for each in candidates], np.int64)
        taken: set[int] = set()
        for region in redundant_regions(candidates, sketch(segments, firsts, lasts)):
            if (found := self._worth(region)) is not None:
                taken.update(each.first for each in region.members)
                yield found
        for region in cold_regions((each for each in candidates if each.first not in taken), iso(before)):
            if (found := self._worth(region)) is not None:
                yield found

    def _worth(self, region: Region) -> tuple[ReadRegion, WrittenSummary] | None:
        """Return a region with the summary of a rule; None if that is not much shorter."""
        read = self._read(region)
        if read is None:
            return None
        written = read.by_rule()
        return None if self._make(read, written) is None else (read, written)

    def _read(self, region: Region) -> ReadRegion | None:
        """Return a region with its texts, without what may not be folded; None if too little is left."""
        members, memories, lines, texts = [], [], [], []
        parts = dict[str, Sequence[ArchivedPart]]()
        with self._image.snapshot() as root:
            for each in region.members:
                found = memories_set_aside.foldable_parts(root, each.row.document)
                if not found:
                    continue
                members.append(each)
                document = root[roots.DOCUMENTS][each.row.document]
                slots = own_slots(document)
                row = ChunkRange(*trees_of(root)["ranges"][each.first])
                memories.append(FoldedMemory(row, slots["title"], slots["speaker"]))
                lines.append(line_of(document))
                texts.append(FoldedText(row.document, slots["title"], "\n\n".join(map(_current_text, found))))
                parts[row.document] = found
        if not members or not is_worth(members):
            return None
        left = replace(region, members=tuple(members))
        return ReadRegion(left, tuple(memories), tuple(lines), tuple(texts), parts)

    def would_fold(self, read: ReadRegion, written: WrittenSummary) -> FoldedRegionLine | None:
        """Return what would become of a region; None if the summary would not be worth it."""
        made = self._make(read, written)
        return None if made is None else _line(read, made, written, "")

    # -- changing

    async def fold(self, read: ReadRegion, written: WrittenSummary) -> FoldedRegionLine | None:
        """Fold a region in one commit; None if it is not worth it, or has changed since it was read."""
        made = await asyncio.to_thread(self._make, read, written)
        if made is None:
            return None
        async with self._store.exclusively():
            count = made.document.numbers
            first = await self._image.shared.apply(lambda root: memory_records.reserve(root, count))
            folded = await asyncio.to_thread(self._build, read, made, written, first)
            done = await self._image.shared.apply(lambda root: memories_set_aside.fold(root, folded))
        await self._store.merge()
        return _line(read, made, written, made.document.name) if done else None

    async def unfold(self, named: str, user: str | None) -> UnfoldedPage:
        """Bring back what a summary stands for, byte for byte. Raises: NotFound."""

        def change(root: Root) -> UnfoldedPage:
            name = memories_set_aside.find_summary(root, named, user)
            back = memories_set_aside.unfold(root, [name])
            return {"summary": name, "documents": [line_of(root[roots.DOCUMENTS][each]) for each in back]}

        async with self._store.exclusively():
            page = await self._image.shared.apply(change)
        await self._store.merge()
        return page

    async def tidy(self) -> None:
        """Write the segments anew that still hold archived parts, each in a commit, once these are many."""
        async with self._store.exclusively():
            stale = await asyncio.to_thread(self._stale)
            gone = {number for first, last in stale for number in range(first, last + 1)}
            for number in await asyncio.to_thread(self._holding) if gone else ():
                found = await asyncio.to_thread(self._less, number, gone)
                if found is not None:
                    before, data = found
                    rewrite = partial(memory_archives.rewrite_segment, number=number, before=before, data=data)
                    await self._image.shared.apply(rewrite)
            if gone:
                await self._image.shared.apply(lambda root: memory_archives.forget_stale(root, stale))
        await asyncio.to_thread(freed_memory.give_back)

    def _stale(self) -> list[tuple[int, int]]:
        """Return what is left in segments of archived parts; nothing while it is little."""
        with self._image.snapshot() as root:
            stale = memory_archives.stale_numbers(root)
            count = sum(last - first + 1 for first, last in stale)
            return stale if count > MOST_STALE * memory_records.chunk_count(root) else []

    def _holding(self) -> list[int]:
        with self._image.snapshot() as root:
            return memory_archives.holding_stale(root)

    def _less(self, number: int, gone: Collection[int]) -> tuple[Segment, bytes] | None:
        """Return a segment and its bytes without some parts; None if it has none of them."""
        with self._image.snapshot() as root:
            row = dict(memory_segments.segments_of(root)).get(number)
            if row is None:
                return None
            data = row.segment.data
            row.segment._p_deactivate()
        less = kinds.merge(row.kind, [data], gone)
        return None if less == data else (row.segment, less)

    # -- making

    def _make(self, read: ReadRegion, written: WrittenSummary) -> MadeSummary | None:
        """Return the summary of a region; None if it has not at most half of the parts, and no line."""
        if not any(each.text for each in written.lines):
            return None
        made = make_summary(read.memories, written.lines, self._clock())
        return made if 2 * len(made.document.chunks) <= max(2, read.region.chunks) else None

    def _build(self, read: ReadRegion, made: MadeSummary, written: WrittenSummary, first: int) -> FoldedRegion:
        titles = {each.name: each.title for each in read.texts}
        entries = [
            Entry(part.number, titles[name], part.text, part.heading, part is parts[0])
            for name, parts in read.parts.items()
            for part in parts
        ]
        built = kinds.build_each(entries)
        span = min(each.id for each in entries), max(each.id for each in entries)
        archived = [NewSegment(kind, data, *span) for kind, data in built.items()]
        archived += self._vectors([each.id for each in entries])
        about = {
            "written_by": written.written_by, "reason": read.region.reason, "written_in": written.mission,
            memories_set_aside.FOLDED_FOR: (read.region.before, read.region.measures()),
        }  # fmt: skip
        return FoldedRegion(
            made.document, first, index_summary(made, first, read.parts, titles), read.parts, archived, about
        )

    def _vectors(self, numbers: Sequence[int]) -> Iterator[NewSegment]:
        """Yield the vectors of parts, of each model that has given one to all of them: nothing is paid for twice."""
        with self._image.snapshot() as root:
            for digest in memory_segments.embedded_digests(root):
                found, matrix = self._search.vectors_of(root, digest, numbers)
                if len(found) == len(numbers):
                    data = vectors.build(found, matrix)
                    yield NewSegment(VECTORS, data, min(numbers), max(numbers), digest)


def _current_text(part: ArchivedPart) -> str:
    """Return the text of a part without what does not simply hold in it."""
    return marked_text(part.text, [ClaimMark(*each) for each in part.marks], "strict")


def _candidates(root: Root, user: str | None) -> Iterator[FoldCandidate]:
    """Yield the memories that may be folded: current ones of a user that are neither facts nor pinned."""
    pinned = memories_set_aside.pinned_names(root)
    counts = regions.find_last_recalls(root)
    for first, row in memory_records.ranges_of(root):
        may = row.standing == "current" and row.kind != "fact" and row.document not in pinned and first <= row.last
        if may and user in (None, row.user):
            yield FoldCandidate(first, row, max(_remembered_at(row), counts.get(first, "")))


def _remembered_at(row: ChunkRange) -> str:
    """Return when a memory was remembered, as its id tells; what was said long ago may be new here."""
    try:
        return iso(begun_at(row.document))
    except ValueError:  # an id of another form
        return row.at


def _line(read: ReadRegion, made: MadeSummary, written: WrittenSummary, name: str) -> FoldedRegionLine:
    return {
        "summary": name,
        "title": made.document.title,
        "text": made.text,
        "reason": read.region.reason,
        "written_by": written.written_by,
        "documents": list(read.lines),
        "chunks": read.region.chunks,
        "left": len(made.document.chunks),
    }
