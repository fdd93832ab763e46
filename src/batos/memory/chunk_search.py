"""Searches the chunks of the image: the indexes in memory, brought up to the segments of the database when asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.image import memory_records, memory_segments
from batos.image.memory_records import ChunkRange, MemoryKind, NewDocument, Standing
from batos.image.memory_segments import VECTORS
from batos.image.roots import Root
from batos.memory.indexes import text, vectors
from batos.memory.indexes.entries import Entry, Hit, Numbers
from batos.memory.indexes.text import TextIndex
from batos.memory.indexes.vectors import Matrix, VectorIndex
from batos.memory.terms import stems
from batos.objects.prototype import UvmObject

#: A search for all that matches.
EVERY: Final = 2**31 - 1
#: The key of the segment of what is not committed, for as long as a search takes.
EXTRA: Final = "extra"


@dataclass(frozen=True, slots=True)
class MemoryReach:
    """The memories that a question may use: of one user (None: of all), and where others are given, only those.

    `since` and `until` are moments (ISO 8601, UTC): from the first on, and before the second.
    """

    user: str | None
    scopes: frozenset[str] | None = None
    kinds: frozenset[MemoryKind] | None = None
    standings: frozenset[Standing] | None = frozenset({"current"})
    sources: frozenset[str] | None = None
    missions: frozenset[str] | None = None
    personas: frozenset[str] | None = None
    since: str = ""
    until: str = ""

    def holds(self, found: ChunkRange) -> bool:
        """Tell whether a document is within reach."""
        asked = (
            (self.scopes, found.scope),
            (self.kinds, found.kind),
            (self.standings, found.standing),
            (self.sources, found.source),
            (self.missions, found.mission),
            (self.personas, found.persona),
        )
        return (
            self.user in (None, found.user)
            and all(wanted is None or value in wanted for wanted, value in asked)
            and self.since <= found.at
            and (not self.until or found.at < self.until)
        )


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A query by meaning: a vector, and the digest of the model that made it."""

    digest: str
    vector: Sequence[float] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class UncommittedMemories:
    """Documents that a mission has made and that no root holds yet: they are searched like those that it has.

    Their chunks have the numbers -1, -2 and so on, in order. `vectors` has a row for each of them, by the model of the
    query; None: there are none.
    """

    documents: tuple[NewDocument, ...] = ()
    vectors: NDArray[Any] | None = None

    def chunks(self) -> Iterator[tuple[int, NewDocument, memory_records.ChunkText]]:
        """Yield each chunk with its number and its document."""
        number = 0
        for document in self.documents:
            for chunk in document.chunks:
                number -= 1
                yield number, document, chunk

    def objects(self) -> dict[int, UvmObject]:
        """Return the chunks as objects that belong to no image."""
        made = {id(each): UvmObject(memory_records.document_slots(each, 0)) for each in self.documents}
        return {
            number: UvmObject(memory_records.chunk_slots(made[id(document)], number, chunk))
            for number, document, chunk in self.chunks()
        }


#: Nothing beside what a root holds.
NO_OTHERS: Final = UncommittedMemories()


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that matches a query, and how well."""

    chunk: UvmObject
    score: float


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """The result of a search in a root: hits, the best first, all of them chunks of that root, or uncommitted ones.

    `rarity` has each word of the query, and how rare it is among the chunks.
    """

    root: Root
    hits: tuple[Hit, ...]
    rarity: Mapping[str, float]
    others: Mapping[int, UvmObject] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of chunks that were found."""
        return len(self.hits)

    def best(self, most: int) -> Iterator[FoundChunk]:
        """Load the best chunks and yield them."""
        for hit in self.hits[:most]:
            chunk = self.others.get(hit.id) or memory_records.find_chunk(self.root, hit.id)
            if chunk is not None:
                yield FoundChunk(chunk, hit.score)


class ChunkSearch:
    """Holds the indexes over an image's chunks in memory. The database has the truth, and this is a cache.

    Any thread may search. The cache follows the newest root that it was shown, and never goes back: who reads an older
    one leaves out the chunks that are not there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = TextIndex()
        self._vectors: dict[str, VectorIndex] = {}
        self._held: dict[int, tuple[str, str]] = {}
        self._change = -1

    def search(
        self,
        root: Root,
        query: str | VectorQuery,
        reach: MemoryReach,
        most: int = EVERY,
        extra: UncommittedMemories = NO_OTHERS,
    ) -> FoundChunks:
        """Return the chunks of a root that match a query best: by its words, or by its vector.

        `extra` are documents that are searched beside those of the root.
        """
        within = _Within(root, reach, extra)
        rarity: dict[str, float] = {}
        with self._lock:
            self._follow(root)
            if isinstance(query, VectorQuery):
                found = self._nearest(query, within, most, extra)
            else:
                found, rarity = self._matching(query, within, most, extra)
        return FoundChunks(root, tuple(found), rarity, extra.objects())

    def vectors_of(self, root: Root, digest: str, numbers: Sequence[int]) -> tuple[Numbers, Matrix]:
        """Return those of some chunks that have a vector of a model, in order, and their vectors (of length 1)."""
        with self._lock:
            self._follow(root)
            index = self._vectors.get(digest, VectorIndex())
            return index.vectors_of([each for each in numbers if memory_records.has_chunk(root, each)])

    def _matching(
        self, query: str, within: _Within, most: int, extra: UncommittedMemories
    ) -> tuple[list[Hit], dict[str, float]]:
        entries = [Entry(number, document.title, chunk.text) for number, document, chunk in extra.chunks()]
        if entries:
            self._text.add(EXTRA, text.build(entries))
        try:
            found = self._text.search(query, most, within.mask)
            return found, {stem: self._text.rarity(stem) for stem in stems(query)}
        finally:
            self._text.drop(EXTRA)

    def _nearest(self, query: VectorQuery, within: _Within, most: int, extra: UncommittedMemories) -> list[Hit]:
        index = self._vectors.get(query.digest) or VectorIndex()
        if extra.vectors is not None and len(extra.vectors):
            numbers = np.array([number for number, *_ in extra.chunks()], np.int64)
            index.add(EXTRA, vectors.build_matrix(numbers, extra.vectors))
        try:
            return index.search(query.vector, most, within.mask)
        finally:
            index.drop(EXTRA)

    def _follow(self, root: Root) -> None:
        """Take in the segments that are new, and drop those that are gone."""
        change = memory_segments.change_of(root)
        if change <= self._change:
            return
        rows = dict(memory_segments.segments_of(root))
        for number in self._held.keys() - rows.keys():
            kind, about = self._held.pop(number)
            self._index(kind, about).drop(number)
        for number in sorted(rows.keys() - self._held.keys()):
            row = rows[number]
            if row.kind in ("text", VECTORS):
                self._index(row.kind, row.about).add(number, row.segment.data)
                self._held[number] = row.kind, row.about
        self._change = change

    def _index(self, kind: str, about: str) -> TextIndex | VectorIndex:
        return self._vectors.setdefault(about, VectorIndex()) if kind == VECTORS else self._text


class _Within:
    """The chunks of a root that are within a reach, by their numbers; uncommitted ones count from the end."""

    def __init__(self, root: Root, reach: MemoryReach, extra: UncommittedMemories) -> None:
        ranges = list(memory_records.ranges_of(root))
        others = [reach.holds(document.range(0)) for _, document, _ in extra.chunks()]
        self._held: NDArray[np.bool_] = np.zeros((ranges[-1][1].last if ranges else 0) + 1 + len(others), bool)
        for first, each in ranges:
            self._held[first : each.last + 1] = reach.holds(each)
        for place, held in enumerate(others, start=1):
            self._held[-place] = held

    def mask(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Tell of each of some numbers if it is within."""
        known = numbers < len(self._held)
        return self._held[np.where(known, numbers, 0)] & known
