"""Searches the chunks of the image: the indexes in memory, brought up to the segments of the database when asked."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.image.roots import Root
from batos.memory import thresholds
from batos.memory.indexes import links, postings, text, vectors
from batos.memory.indexes.links import LinkIndex
from batos.memory.indexes.postings import Entry, Numbers, Postings, words_beside
from batos.memory.indexes.text import TextIndex, best_of
from batos.memory.indexes.vectors import Matrix, VectorIndex
from batos.memory.records import memory_archives, memory_records, memory_segments
from batos.memory.records.memory_records import ChunkRange, NewDocument
from batos.memory.records.memory_segments import VECTORS
from batos.memory.search import linked_recall, metadata
from batos.memory.search.linked_recall import NOTHING_SAID, ChunksWithin, Legs, Link, NamesWithin, RankedChunk
from batos.memory.search.metadata import MemoryReach, MetadataIndex
from batos.memory.segmentation import sentence_spans, words
from batos.memory.text_units import head_within
from batos.memory.words_by_language import wanted_words
from batos.objects.prototype import UvmObject, own_slots

#: The kinds of segments that are built of texts.
TEXT, LINKS = "text", "links"
#: The parts that each leg of a search is looked through for.
CANDIDATES: Final = 200
#: A search for all that matches.
EVERY: Final = 2**31 - 1
#: Changes of documents that are known beside the newest state, for who reads an older root.
MOST_REMEMBERED: Final = 256
#: The key of the segment of what is not committed, for as long as a search takes.
EXTRA: Final = "extra"


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
class RecallQuery:
    """A question to memory: its words, its vector where there is one, and what it is recalled with."""

    words: str
    vector: VectorQuery | None = None
    mode: linked_recall.RecallMode = "linked"


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that was found, and how: its score, the link that led to it, and whether the question names it."""

    chunk: UvmObject
    score: float
    link: Link | None = None
    is_named: bool = False
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """The result of a search in a root: parts, the best first, all of them chunks of that root, or uncommitted ones.

    `count` chunks have a word of the query. `said` has each word of the query, and how rare it is among the chunks;
    `cosines` how near chunks are by their vectors, where there are some.
    """

    root: Root
    parts: tuple[RankedChunk, ...]
    count: int
    said: linked_recall.SaidWords
    cosines: Mapping[int, float] = field(default_factory=dict)
    others: Mapping[int, UvmObject] = field(default_factory=dict)

    def best(self, most: int) -> Iterator[FoundChunk]:
        """Load the best chunks and yield them."""
        for each in self.parts[:most]:
            chunk = self.find(each.id)
            if chunk is not None:
                yield FoundChunk(chunk, each.score, each.link, each.is_named, self.cosines.get(each.id))

    def find(self, number: int) -> UvmObject | None:
        """Return a chunk, uncommitted or of the root."""
        return self.others.get(number) or memory_records.find_chunk(self.root, number)

    def document_of(self, number: int) -> UvmObject | None:
        """Return the document of a chunk."""
        chunk = self.find(number)
        return None if chunk is None else own_slots(chunk)["document"]

    def text_of(self, number: int) -> str | None:
        """Return the text of a chunk."""
        chunk = self.find(number)
        return None if chunk is None else own_slots(chunk)["text"]


class ChunkSearch:
    """Holds the indexes over an image's chunks in memory. The database has the truth, and this is a cache.

    Any thread may search. The cache follows the newest root that it was shown, and never goes back: who reads an older
    one leaves out the chunks that are not there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = TextIndex()
        self._links = LinkIndex()
        self._vectors: dict[str, VectorIndex] = {}
        self._held: dict[int, tuple[str, str]] = {}
        self._change = -1
        self._metadata = MetadataIndex()
        #: From and to which first chunk documents changed, by the number of the change; from `_touched_from` on.
        self._touched: dict[int, tuple[tuple[int, int], ...]] = {}
        self._touched_from = 0

    def recall(
        self,
        root: Root,
        query: RecallQuery,
        reach: MemoryReach,
        most: int = EVERY,
        extra: UncommittedMemories = NO_OTHERS,
    ) -> FoundChunks:
        """Return the chunks of a root that match a query best.

        `extra` are documents that are searched beside those of the root.
        """
        others = [reach.holds(document.range(0)) for _, document, _ in extra.chunks()]
        objects = extra.objects()
        with self._lock:
            self._follow(root)
            spans, archives = self._spans(root, reach), frozenset[str]()
            if reach.wants("summarised"):
                spans, archives = _add_archived(root, reach, spans)
            if not (len(spans[0]) or any(others)):
                return FoundChunks(root, (), 0, NOTHING_SAID)
            within = ChunksWithin(spans, others)
            with self._holding(extra, query.vector), self._holding_archives(root, archives, query.words):
                legs, count = self._legs(query, within, max(most, CANDIDATES) if query.mode == "text" else CANDIDATES)
                found = FoundChunks(root, (), count, legs.said, legs.cosines, objects)
                names = NamesWithin(self._links, self._text, within, found.document_of)
                named = {id_ for each in names.mentions(query.words) for id_ in names.resolve(each.name)}
                parts = linked_recall.recall(legs, query.mode, named, found.text_of, names)
        return replace(found, parts=tuple(parts[:most]))

    def documents(self, root: Root, reach: MemoryReach) -> tuple[Numbers, int]:
        """Return the first chunk of each document within reach, the newest first, and the number of all chunks."""
        with self._lock:
            self._follow(root)
            firsts, lasts = self._spans(root, reach)
        return -np.sort(-firsts), int((lasts - firsts + 1).sum())

    def vectors_of(self, root: Root, digest: str, numbers: Sequence[int]) -> tuple[Numbers, Matrix]:
        """Return those of some chunks that have a vector of a model, in order, and their vectors (of length 1)."""
        with self._lock:
            self._follow(root)
            index = self._vectors.get(digest, VectorIndex())
            return index.vectors_of([each for each in numbers if memory_records.has_chunk(root, each)])

    def word_segments(self, root: Root) -> list[Postings]:
        """Return the segments of words of the newest root that was seen, this one at least."""
        with self._lock:
            self._follow(root)
            return self._text.segments()

    @contextmanager
    def _holding_archives(self, root: Root, names: Collection[str], words: str) -> Iterator[None]:
        """Hold those archives in the index that have a word of a query, for as long as that search takes."""
        held, wanted = [], [postings.word_of(each) for each in wanted_words(words).stem_of]
        try:
            for name, data in memory_archives.text_segments(root) if names else ():
                if name in names and postings.holds_any(text.KIND, data, wanted):
                    self._text.add(name, data)
                    held.append(name)
            yield
        finally:
            for name in held:
                self._text.drop(name)

    @contextmanager
    def _holding(self, extra: UncommittedMemories, vector: VectorQuery | None) -> Iterator[None]:
        """Hold documents that are not committed in the indexes, for as long as a search takes."""
        entries = [
            Entry(number, document.title, chunk.text, chunk.heading, chunk is document.chunks[0])
            for number, document, chunk in extra.chunks()
        ]
        if not entries:
            yield
            return
        self._text.add(EXTRA, text.build(entries))
        self._links.add(EXTRA, links.build(entries))
        vectors_ = self._vectors.setdefault(vector.digest, VectorIndex()) if vector else VectorIndex()
        if extra.vectors is not None and len(extra.vectors):
            numbers = np.array([number for number, *_ in extra.chunks()], np.int64)
            vectors_.add(EXTRA, vectors.build(numbers, extra.vectors))
        try:
            yield
        finally:
            for index in (self._text, self._links, vectors_):
                index.drop(EXTRA)

    def _legs(self, query: RecallQuery, within: ChunksWithin, most: int) -> tuple[Legs, int]:
        """Return the scores of the best chunks by words and by vectors, each leg for all of them."""
        wanted = wanted_words(query.words)
        said = linked_recall.SaidWords(self._text.rarity(wanted), wanted)
        ids, scores = self._text.score(query.words, within.mask)
        count = _count_different(ids)
        words = {} if query.mode == "vectors" else best_of(ids, scores, most)
        index = self._vectors.get(query.vector.digest) if query.vector else None
        if index is None or query.vector is None or query.mode == "text":
            return Legs(words, {}, said), count
        cosines = index.search(query.vector.vector, most, within.mask)
        if words:
            kept = np.isin(ids, np.fromiter(cosines, np.int64), kind="table")  # many ids: numpy's choice is slower
            words.update(zip(ids[kept].tolist(), scores[kept].tolist(), strict=True))
        near = partial(_cosines, index, query.vector)
        cosines.update(near([*words.keys() - cosines.keys()]))
        return Legs(words, cosines, said, near), count

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
            if row.kind in (TEXT, LINKS, VECTORS):
                self._index(row.kind, row.about).add(number, row.segment.data)
                row.segment._p_deactivate()  # the index holds what it says, and the connection need not
                self._held[number] = row.kind, row.about
        self._follow_documents(root, change)
        self._change = change

    def _follow_documents(self, root: Root, change: int) -> None:
        touched = memory_segments.touched_since(root, self._change)
        if touched is None:
            self._metadata, self._touched = metadata.index_of(memory_records.ranges_of(root)), {}
            self._touched_from = change
            return
        for at, several in touched:
            self._touched[at] = several
            for begin, end in several:
                self._metadata.drop(begin, end)
                for first, row in memory_records.ranges_of(root, begin, end):
                    self._metadata.put(first, row)
        for oldest in list(self._touched)[:-MOST_REMEMBERED]:
            del self._touched[oldest]
            self._touched_from = oldest

    def _spans(self, root: Root, reach: MemoryReach) -> tuple[Numbers, Numbers]:
        """Return the spans of the documents of a root within reach, also if that root is older than the cache."""
        change = memory_segments.change_of(root)
        if change < self._touched_from:
            return metadata.index_of(memory_records.ranges_of(root)).spans(reach)
        firsts, lasts = self._metadata.spans(reach)
        later = [pair for at, several in self._touched.items() if at > change for pair in several]
        if later:
            begins, ends = np.array(sorted(later), np.int64).T  # pairs times documents would be a table without bounds
            at = np.searchsorted(begins, firsts, "right") - 1
            kept = (at < 0) | (firsts > np.maximum.accumulate(ends)[at])
            rows = dict(row for begin, end in later for row in memory_records.ranges_of(root, begin, end))
            before = metadata.index_of(rows.items()).spans(reach)
            firsts = np.concatenate((firsts[kept], before[0]))
            lasts = np.concatenate((lasts[kept], before[1]))
        return firsts, lasts

    def _index(self, kind: str, about: str) -> TextIndex | LinkIndex | VectorIndex:
        if kind == VECTORS:
            return self._vectors.setdefault(about, VectorIndex())
        return self._links if kind == LINKS else self._text


def _add_archived(
    root: Root, reach: MemoryReach, spans: tuple[Numbers, Numbers]
) -> tuple[tuple[Numbers, Numbers], frozenset[str]]:
    """Return spans with those of archived documents within reach, and the names of the archives that have these."""
    rows = [(first, name, ChunkRange(*row)) for first, name, row in memory_archives.rows(root)]
    wanted = [(first, name, row.last) for first, name, row in rows if reach.holds(row)]
    firsts = np.array([first for first, _, _ in wanted], np.int64)
    lasts = np.array([last for _, _, last in wanted], np.int64)
    joined = np.concatenate((spans[0], firsts)), np.concatenate((spans[1], lasts))
    return joined, frozenset(name for _, name, _ in wanted)


def _count_different(ids: Numbers) -> int:
    """Count different ids, which lie near each other: faster than sorting or hashing them."""
    if not len(ids):
        return 0
    least = int(ids.min())
    held: NDArray[np.bool_] = np.zeros(int(ids.max()) - least + 1, bool)
    held[ids - least] = True
    return int(np.count_nonzero(held))


def _cosines(index: VectorIndex, query: VectorQuery, ids: Sequence[int]) -> dict[int, float]:
    """Return the cosines of those of some chunks that have a vector."""
    vector = np.nan_to_num(np.asarray(query.vector, np.float32))
    length = float(np.linalg.norm(vector))
    if length == 0.0 or vector.shape != (index.dimensions,):
        return {}
    found, matrix = index.vectors_of(ids)
    return dict(zip(found.tolist(), (matrix @ (vector / length)).tolist(), strict=True))


# -- how near a part is to a question, and what is near enough to be shown to a mission


#: A part of a longer file that has fewer words is what stood between others, and says nothing alone.
LEAST_WORDS: Final = 6


def nearness(found: FoundChunk, said: linked_recall.SaidWords) -> float:
    """Return how near a chunk is to a query, as a share of what is near enough: from 1 on it is shown to a mission.

    Words measure that, and vectors where the chunk has one. The sentence that led to a chunk counts as one of
    its own.
    """
    if _is_remnant(found.chunk):
        return 0.0
    covered = coverage(said, found.chunk, found.link.sentence if found.link else "")
    if found.cosine is None:
        return covered / thresholds.RECALL_COVERED
    return (covered + found.cosine) / 2 / thresholds.RECALL_ALIKE


def coverage(said: linked_recall.SaidWords, chunk: UvmObject, led_by: str = "") -> float:
    """Return how much of a query a chunk has: the mean of the chunk's share and that of the best of its sentences.

    A share is that of the weight of the query's words by their rarity. Those of the title and of the sentence that led
    to the chunk are each sentence's too.
    """
    said, slots = said.telling(), own_slots(chunk)
    text = slots["text"]
    document = own_slots(slots["document"])
    beside = words_beside(document["source"], document["said_at"])
    known = said.words.find_in(f"{document['title']}\n{beside}\n{slots['heading']}\n{led_by}")
    sentences = (said.words.find_in(text[start:end]) for start, end in sentence_spans(text))
    whole = said.share(known | said.words.find_in(text))
    return (whole + max((said.share(known | each) for each in sentences), default=0.0)) / 2


def _is_remnant(chunk: UvmObject) -> bool:
    """Test if a chunk is a few words between others of a file, and no row of a table."""
    slots = own_slots(chunk)
    first, last = own_slots(slots["document"])["chunks"]
    is_part = first < last and own_slots(slots["document"])["kind"] == "document"
    return is_part and len(words(slots["text"])) < LEAST_WORDS and not head_within(slots["heading"])
