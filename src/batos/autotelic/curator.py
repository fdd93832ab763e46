"""The curator: decides which memories a summary stands for, has a model write it, and has them folded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from batos.autotelic.model_missions import Ask, MissionTask, ModelMissions
from batos.events import Events
from batos.gate.attribution import attribute
from batos.gate.evidence_index import EvidenceIndex
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.memory import region_summaries, regions
from batos.memory.evidence import Evidence, Passage
from batos.memory.fold_store import FoldStore, ReadRegion, WrittenSummary
from batos.memory.region_summaries import SummaryLine
from batos.memory.regions import RecallTally
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
    #: Tests before each region if the run goes on.
    go_on: Callable[[], bool] = lambda: True


class Curator:
    """Curates what one image remembers, one run at a time. A run that is killed leaves whole regions."""

    def __init__(
        self,
        image: LivingImage,
        folds: FoldStore,
        clock: Callable[[], datetime],
        events: Events,
        writer: ModelSummaries | None = None,
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
                if len(lines) == wish.most or not wish.go_on():
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
        self, read: ReadRegion, by_rule: WrittenSummary, writer: ModelSummaries | None
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
            await self._image.shared.apply(lambda root: regions.count_recalls(root, noted, at))


#: Characters of a region that a model is shown: the most central sentences, which the window of a small one holds.
SHOWN: Final = 6_000
#: Sentences that it is asked for: as many as there are memories, between these.
FEWEST, MOST = 3, 12


class ModelSummaries:
    """Writes summaries by missions that neither use nor leave memories."""

    def __init__(self, ask: Ask, answers: Callable[[], Awaitable[bool]], check: Callable[[], Awaitable[None]]) -> None:
        self._missions = ModelMissions(ask, answers, check)

    async def can_write(self) -> bool:
        """Test if a model would answer now."""
        return await self._missions.can_ask()

    async def write(self, read: ReadRegion, by_rule: WrittenSummary) -> WrittenSummary | None:
        """Return the sentences of a model that memories of the region carry, each with its memory.

        A memory that no sentence is about has the line of the rule. None: there is no answer, or nothing of it stands;
        after some failures in a row no more is asked in this run.
        """
        told = await self._missions.report(_task_of(read))
        if told is None:
            return None
        carried = carried_sentences(read, str(told.get("answer") or ""))
        if not carried:
            return None
        ruled = {each.name: each for each in by_rule.lines}
        lines = [
            SummaryLine(each.name, region_summaries.titled_text(each.title, " ".join(carried[each.name])))
            if each.name in carried
            else ruled[each.name]
            for each in read.texts
        ]
        return WrittenSummary(lines, "model", str(told["id"]))


def carried_sentences(read: ReadRegion, answer: str) -> dict[str, list[str]]:
    """Return the sentences of an answer that a region carries, by the memory that carries each best, in their order."""
    passages = tuple(_passages(read))
    whose = {each.number: each.document for each in passages}
    found: dict[str, list[str]] = {}
    for sentence in attribute(answer, "", EvidenceIndex(Evidence(passages))).select("carried"):
        name = whose.get(max(sentence.carriers, key=lambda each: each.score).document)
        if name is not None:
            found.setdefault(name, []).append(" ".join(sentence.text.split()))
    return found


def _passages(read: ReadRegion) -> Iterator[Passage]:
    """Yield the texts of a region as evidence, without what does not hold in them."""
    for number, (text, line) in enumerate(zip(read.texts, read.lines, strict=True), start=1):
        yield Passage(number, text.title, line["sha256"], 0, text.text, line["trust"], text.name)


def _task_of(read: ReadRegion) -> MissionTask:
    shown = "\n\n".join(each.text for each in region_summaries.central(read.texts, SHOWN) if each.text)
    sentences = min(MOST, max(FEWEST, len(read.texts)))
    text = (
        f"Summarise these notes in at most {sentences} short sentences, in their own words. Name in each sentence what"
        " it is about. State nothing else."
    )
    return MissionTask(text, read.lines[0]["user"], "curator", shown)
