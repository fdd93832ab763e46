"""Searches the chunks of the image: the indexes in memory, brought up to the segments of the database when asked."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from batos.image import memory_records
from batos.image.memory_records import ChunkRange, MemoryKind, Standing
from batos.image.roots import Root
from batos.memory.indexes.entries import Hit
from batos.memory.indexes.text import TextIndex
from batos.memory.terms import stems
from batos.objects.prototype import UvmObject

#: A search for all that matches.
EVERY: Final = 2**31 - 1


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
class FoundChunk:
    """A chunk that matches a query, and how well."""

    chunk: UvmObject
    score: float


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """The result of a search in a root: hits, the best first, all of them chunks of that root.

    `rarity` has each word of the query, and how rare it is among the chunks.
    """

    root: Root
    hits: tuple[Hit, ...]
    rarity: Mapping[str, float]

    @property
    def count(self) -> int:
        """Return the number of chunks that were found."""
        return len(self.hits)

    def best(self, most: int) -> Iterator[FoundChunk]:
        """Load the best chunks and yield them."""
        for hit in self.hits[:most]:
            chunk = memory_records.find_chunk(self.root, hit.id)
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
        self._held: frozenset[int] = frozenset()
        self._change = -1
        self._firsts: list[int] = []
        self._ranges: list[ChunkRange] = []

    def search(self, root: Root, query: str, reach: MemoryReach, most: int = EVERY) -> FoundChunks:
        """Return the chunks of a root that match a query best."""
        with self._lock:
            self._follow(root)
            found = self._text.search(query, most, self._filter(reach))
            rarity = {stem: self._text.rarity(stem) for stem in stems(query)}
        return FoundChunks(root, tuple(hit for hit in found if memory_records.has_chunk(root, hit.id)), rarity)

    def _follow(self, root: Root) -> None:
        """Take in the segments that are new, and drop those that are gone."""
        change = memory_records.change_of(root)
        if change <= self._change:
            return
        segments = dict(memory_records.segments_of(root))
        for number in self._held - segments.keys():
            self._text.drop(number)
        for number in sorted(segments.keys() - self._held):
            self._text.add(number, segments[number].data)
        self._held, self._change = frozenset(segments), change
        ranges = list(memory_records.ranges_of(root))
        self._firsts, self._ranges = [first for first, _ in ranges], [each for _, each in ranges]

    def _filter(self, reach: MemoryReach) -> Callable[[int], bool]:
        firsts, ranges = self._firsts, self._ranges

        def is_within(number: int) -> bool:
            at = bisect_right(firsts, number) - 1
            return at >= 0 and number <= ranges[at].last and reach.holds(ranges[at])

        return is_within
