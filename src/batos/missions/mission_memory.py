"""Remembers answered missions: many in one commit, soon after they are done, and none is left out by a kill."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Final

from batos.concurrency.jobs import Job
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.records import least_trust
from batos.image.roots import Root
from batos.memory.curation import recall_counts
from batos.memory.document_store import DocumentStore
from batos.memory.exchanges import documents_of
from batos.memory.records import memory_pins, memory_places, memory_quotes, memory_records, retractions
from batos.memory.records.memory_records import NewDocument
from batos.memory.terms import line_of
from batos.objects.prototype import own_slots

#: Seconds after an answer in which others may come that are written with it.
PAUSE: Final = 0.5
#: Missions of one commit.
BATCH: Final = 64


class MissionMemory:
    """Writes the memories of missions that are done. Those that still wait stand in the image (roots.UNREMEMBERED)."""

    def __init__(
        self,
        image: LivingImage,
        store: DocumentStore,
        clock: Callable[[], datetime],
    ) -> None:
        self._image = image
        self._store = store
        self._clock = clock
        self._writing = asyncio.Lock()
        self.job = Job(
            "memories", self.write, lambda: image.publishing.is_here, PAUSE, ends_itself=True, runs_last=True
        )
        image.signals.answered.call(lambda *_mission: self.job.wake())
        image.signals.published.call(self.job.wake)

    async def write(self) -> None:
        """Remember all missions that wait, at the node that publishes."""
        async with self._writing:
            while self._image.refusing is None and self._image.publishing.is_here:
                missions, documents, recalled = await asyncio.to_thread(self._documents)
                if not missions:
                    return

                def note(
                    root: Root,
                    missions: list[str] = missions,
                    documents: list[NewDocument] = documents,
                    recalled: Counter[str] = recalled,
                ) -> None:
                    for mission in missions:
                        root[roots.UNREMEMBERED].discard(mission)
                        self._follow_corrections(root, mission)
                    self._join_equal_questions(root, documents)
                    recall_counts.count_recalls(root, recalled, iso(self._clock()))

                await self._store.add(documents, note)
                self._image.signals.remembered.give()

    def _documents(self) -> tuple[list[str], list[NewDocument], Counter[str]]:
        """Return the first missions that wait, their documents, and how many of them were shown each memory."""
        now, made, recalled = self._clock(), list[NewDocument](), Counter[str]()
        with self._image.snapshot() as root:
            missions = list(islice(root[roots.UNREMEMBERED], BATCH))
            for mission in missions:
                record = roots.find_record(root, mission)
                if record is not None and record.status.word == "done":
                    thought = own_slots(record.thought)
                    made.extend(documents_of(mission, record.brief, thought, now))
                    recalled.update(set(recall_counts.shown_memories(thought.get("provenance", {}))))
            documents = _drop_known(root, made)
        return missions, documents, recalled

    def _follow_corrections(self, root: Root, mission: str) -> None:
        """Do with what was just remembered as a person did meanwhile: with its mission, or with what it was made from.

        Of a mission that is undone nothing is remembered; what was retracted or forgotten takes its answer along.
        """
        record = roots.find_record(root, mission)
        if record is not None and record.status.word == "undone":
            made = memory_records.documents_of_mission(root, mission)
            self._store.forget_exactly(root, [own_slots(each)["name"] for each in made])
            return
        if memory_quotes.cites_what_is_gone(root, mission):
            answer = memory_places.names_with_source(root, mission)
            memory_records.forget(root, list(answer))
        retractions.retract_later(root, mission)

    def _join_equal_questions(self, root: Root, documents: Iterable[NewDocument]) -> None:
        """Keep one answer to a question that was asked again: the newest, unless an older one alone is evidence."""
        for document in documents:
            if document.kind != "mission" or document.name not in root[roots.DOCUMENTS]:
                continue
            asked = f"asked/{hashlib.sha256(line_of(document.title).encode()).hexdigest()[:16]}"
            former = memory_places.find_by_source(root, document.user, document.scope, asked)
            kept = document.name
            if former is not None:
                slots = own_slots(root[roots.DOCUMENTS][former])
                if memory_pins.is_pinned(root, former) or slots["standing"] != "current":
                    continue
                stays = slots.get("is_evidence", True) and not document.is_evidence
                kept, gone = (former, document.name) if stays else (document.name, former)
                self._store.forget_exactly(root, [gone])
            memory_records.add_places(root, [(kept, asked)])


def _drop_known(root: Root, made: Iterable[NewDocument]) -> list[NewDocument]:
    """Return the documents that are to be remembered: of a text that methods gave, the first one or a better one.

    A text of a person may stand in the place of the same text that a model is responsible for. The other way round,
    and between equals, the text is known.
    """
    left: dict[tuple[str, str, str], NewDocument] = {}
    for document in made:
        key = document.user, document.scope, document.source
        if document.kind != "document":
            left[key] = document
            continue
        other = left.get(key)
        name = memory_places.find_by_source(root, *key)
        known = None if name is None else own_slots(root[roots.DOCUMENTS][name])
        is_known = other is not None and not _is_better(document, other.trust, is_evidence=other.is_evidence)
        if known is not None:
            is_evidence = known.get("is_evidence", True) and known["standing"] != "retracted"
            is_known = is_known or not _is_better(document, known["trust"], is_evidence=is_evidence)
        if not is_known:
            left[key] = document
    return list(left.values())


def _is_better(document: NewDocument, trust: str, *, is_evidence: bool) -> bool:
    """Test if a text is trusted more than the same text that nothing is answered from."""
    return not is_evidence and least_trust(document.trust, trust) != document.trust
