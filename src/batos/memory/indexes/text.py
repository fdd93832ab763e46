"""Find entries by their words (BM25): postings in immutable segments, and the index that a process makes of them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.errors import IndexDamaged
from batos.memory.indexes.entries import Among, Entry, Hit, Numbers
from batos.memory.indexes.segment_bytes import number_bytes, pack, read_numbers, unpack
from batos.memory.terms import stems

KIND: Final = b"text"
#: BM25: how soon a term's repetitions stop to count, and how much the length of an entry counts.
K1, B = 1.2, 0.75
#: The most times that a term is counted in one entry, and the most that an entry's length is.
MOST_TIMES, MOST_LENGTH = 65535, 0xFFFFFFFF

_LINE_END: Final = 10
_MOST_RUNS: Final = 1024


@dataclass(frozen=True, slots=True)
class Postings:
    """A segment as it is read: ids and lengths of its entries, and for each word a run of places and of times.

    `words` are UTF-8, one line each; word n is between `starts[n]` and `starts[n + 1] - 1`, its run between `runs[n]`
    and `runs[n + 1]`.
    """

    ids: Numbers
    lengths: NDArray[np.uint32]
    words: bytes
    starts: Numbers
    runs: Numbers
    places: NDArray[np.uint32]
    times: NDArray[np.uint16]

    @property
    def count(self) -> int:
        """Return the number of words."""
        return len(self.starts) - 1

    def word(self, number: int) -> bytes:
        """Return a word by its number."""
        return self.words[self.starts[number] : self.starts[number + 1] - 1]

    def run(self, word: bytes) -> tuple[int, int]:
        """Return where the run of a word begins and ends; (0, 0) if no entry holds it."""
        number = bisect_left(range(self.count), word, key=self.word)
        if number == self.count or self.word(number) != word:
            return 0, 0
        return int(self.runs[number]), int(self.runs[number + 1])

    def word_list(self) -> list[bytes]:
        """Return all words, in order."""
        return self.words.split(b"\n") if self.count else []


def word_of(term: str) -> bytes:
    """Return a term as segments hold it."""
    return term.encode("utf-8", "surrogatepass")


def build(entries: Iterable[Entry]) -> bytes:
    """Return a segment of entries; the terms of a title count as those of the text. Of one id the last entry counts.

    The same entries give the same bytes in any order.
    """
    counts = {entry.id: Counter(stems(f"{entry.title}\n{entry.text}")) for entry in entries}
    ids = sorted(counts)
    numbers: dict[str, int] = {}
    words: list[int] = []
    times: list[int] = []
    held: list[int] = []
    for id_ in ids:
        count = counts[id_]
        held.append(len(count))
        words.extend([numbers.setdefault(term, len(numbers)) for term in count])
        times.extend(count.values())
    given = [word_of(term) for term in numbers]
    order: Numbers = np.empty(len(given), np.int64)
    order[sorted(range(len(given)), key=given.__getitem__)] = np.arange(len(given))
    return _write(
        np.array(ids, np.int64),
        np.minimum(np.array([counts[id_].total() for id_ in ids], np.int64), MOST_LENGTH).astype(np.uint32),
        sorted(given),
        _Triples(
            order[np.array(words, np.int64)],
            np.repeat(np.arange(len(ids)), np.array(held, np.int64)),
            np.minimum(np.array(times, np.int64), MOST_TIMES).astype(np.uint16),
        ),
    )


def merge(segments: Sequence[bytes], gone: Container[int]) -> bytes:
    """Return one segment of all entries of some segments but those that are gone.

    The bytes are those of a segment that was built of these entries at once. Of an id in several segments the last one
    counts.
    """
    read = [read_segment(segment) for segment in segments]
    ids = np.concatenate([np.empty(0, np.int64), *(each.ids for each in read)])
    lengths = np.concatenate([np.empty(0, np.uint32), *(each.lengths for each in read)])
    _, last = np.unique(ids[::-1], return_index=True)
    rows = len(ids) - 1 - last
    rows = rows[np.array([id_ not in gone for id_ in ids[rows].tolist()], bool)]
    places: Numbers = np.full(len(ids), -1, np.int64)
    places[rows] = np.arange(len(rows))
    words = sorted({word for each in read for word in each.word_list()})
    number_of = {word: number for number, word in enumerate(words)}
    triples, begin = [_Triples.none()], 0
    for each in read:
        own = np.array([number_of[word] for word in each.word_list()], np.int64)
        new = places[begin + each.places.astype(np.int64)]
        kept = new >= 0
        triples.append(_Triples(np.repeat(own, np.diff(each.runs))[kept], new[kept], each.times[kept]))
        begin += len(each.ids)
    return _write(ids[rows], lengths[rows], words, _Triples.join(triples))


@dataclass(frozen=True, slots=True)
class _Triples:
    """Postings as they are collected: the number of a word, the place of an entry, and how often it holds the word."""

    words: Numbers
    places: Numbers
    times: NDArray[np.uint16]

    @classmethod
    def none(cls) -> _Triples:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint16))

    @classmethod
    def join(cls, several: Sequence[_Triples]) -> _Triples:
        return cls(
            np.concatenate([each.words for each in several]),
            np.concatenate([each.places for each in several]),
            np.concatenate([each.times for each in several]),
        )


def _write(ids: Numbers, lengths: NDArray[np.uint32], words: Sequence[bytes], triples: _Triples) -> bytes:
    """Return the segment of these; a word that nothing holds is left out."""
    # Stable, since what several segments hold is in order already, segment by segment.
    order = np.argsort(triples.words * max(1, len(ids)) + triples.places, kind="stable")
    sizes = np.bincount(triples.words, minlength=len(words))
    held = [word for word, size in zip(words, sizes.tolist(), strict=True) if size]
    sizes = sizes[sizes > 0]
    places = triples.places[order]
    return pack(
        KIND,
        (
            number_bytes("<i8", ids),
            number_bytes("<u4", lengths),
            b"\n".join(held),
            number_bytes("<u4", sizes),
            number_bytes("<u4", _steps(places, _runs_of(sizes))),
            number_bytes("<u2", triples.times[order]),
        ),
    )


def _runs_of(sizes: NDArray[Any]) -> Numbers:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _steps(places: Numbers, runs: Numbers) -> Numbers:
    """Return each place but the first of a run as the step from the one before it: small numbers pack well."""
    steps = np.diff(places, prepend=0)
    steps[runs[:-1]] = places[runs[:-1]]
    return steps


def _places(steps: Numbers, runs: Numbers) -> Numbers:
    """Return the places that steps lead to. Raises: IndexDamaged: they are out of order."""
    begins: NDArray[np.bool_] = np.zeros(len(steps), bool)
    begins[runs[:-1]] = True
    if np.any(steps[~begins] == 0):
        raise IndexDamaged("the places of a text segment are out of order")
    led = np.cumsum(steps, dtype=np.int64)
    return led - np.repeat(led[runs[:-1]] - steps[runs[:-1]], np.diff(runs))


def read_segment(segment: bytes) -> Postings:
    """Return what a segment holds; IndexDamaged if the parts do not fit each other."""
    sections = unpack(KIND, segment, 6)
    ids, lengths = read_numbers("<i8", sections[0]), read_numbers("<u4", sections[1])
    words, sizes = bytes(sections[2]), read_numbers("<u4", sections[3])
    steps, times = read_numbers("<u4", sections[4]), read_numbers("<u2", sections[5])
    ends = np.flatnonzero(np.frombuffer(words, np.uint8) == _LINE_END)
    starts = np.concatenate(([0], ends + 1, [len(words) + 1])) if len(sizes) else np.zeros(1, np.int64)
    if len(starts) - 1 != len(sizes) or (words and not len(sizes)):
        raise IndexDamaged(f"a segment has not the {len(sizes)} words that it tells")
    runs = _runs_of(sizes)
    fits = len(ids) == len(lengths) and len(steps) == len(times) == runs[-1]
    if not fits or 0 in sizes or 0 in times:
        raise IndexDamaged("the parts of a text segment do not fit each other")
    places = _places(steps, runs)
    found = Postings(ids, lengths, words, starts, runs, places.astype(np.uint32), times)
    listed = found.word_list()
    if np.any(ids[1:] <= ids[:-1]) or any(one >= other for one, other in pairwise(listed)):
        raise IndexDamaged("the ids or the words of a text segment are out of order")
    if len(places) and int(places.max()) >= len(ids):
        raise IndexDamaged("a place of a text segment names nothing")
    return found


@dataclass(slots=True)
class _IndexedSegment:
    """A segment in the index, and which of its entries are hidden (by their places)."""

    postings: Postings
    shown: NDArray[np.bool_]
    hidden: int = 0
    #: Runs that were looked for lately: a search asks for each several times.
    runs: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def run(self, word: bytes) -> tuple[int, int]:
        """Return where the run of a word begins and ends."""
        found = self.runs.get(word)
        if found is None:
            if len(self.runs) >= _MOST_RUNS:
                self.runs.clear()
            found = self.runs[word] = self.postings.run(word)
        return found

    def place(self, id_: int) -> int | None:
        """Return the place of an entry, None if it is not of this segment."""
        ids = self.postings.ids
        place = int(np.searchsorted(ids, id_))
        return place if place < len(ids) and ids[place] == id_ else None

    def live_count(self, word: bytes) -> int:
        """Return the number of entries that hold a word and are not hidden."""
        begin, end = self.run(word)
        if not self.hidden:
            return end - begin
        return int(np.count_nonzero(self.shown[self.postings.places[begin:end]]))


class TextIndex:
    """The segments of a memory by their keys, searched as one; what is hidden counts for nothing.

    An id stands in one segment. An id that is hidden stays so in segments that come later, until it is shown.
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, _IndexedSegment] = {}
        self._hidden: set[int] = set()
        self._count = self._length = 0

    def add(self, key: Hashable, segment: bytes) -> None:
        """Add a segment under a key, in the place of what had that key. Damaged bytes raise IndexDamaged."""
        postings = read_segment(segment)
        self.drop(key)
        part = _IndexedSegment(postings, np.ones(len(postings.ids), bool))
        self._parts[key] = part
        self._count += len(postings.ids)
        self._length += int(postings.lengths.sum())
        hidden = self._hidden if len(self._hidden) < len(postings.ids) else self._hidden & set(postings.ids.tolist())
        for id_ in hidden:
            self._count_hidden(part, id_)

    def drop(self, key: Hashable) -> None:
        """Leave out the segment of a key; an unknown key is no fault."""
        part = self._parts.pop(key, None)
        if part is not None:
            self._count -= int(np.count_nonzero(part.shown))
            self._length -= int(part.postings.lengths[part.shown].sum())

    def hide(self, ids: Iterable[int]) -> None:
        """Hide entries, also such as come later: they are not found and count for nothing."""
        for id_ in ids:
            if id_ not in self._hidden:
                self._hidden.add(id_)
                for part in self._parts.values():
                    self._count_hidden(part, id_)

    def _count_hidden(self, part: _IndexedSegment, id_: int, shown: bool = False) -> None:
        place = part.place(id_)
        if place is not None:
            change = 1 if shown else -1
            part.shown[place] = shown
            part.hidden -= change
            self._count += change
            self._length += change * int(part.postings.lengths[place])

    def show(self, ids: Iterable[int]) -> None:
        """Show entries again that were hidden."""
        for id_ in ids:
            if id_ in self._hidden:
                self._hidden.remove(id_)
                for part in self._parts.values():
                    self._count_hidden(part, id_, shown=True)

    def ids(self) -> set[int]:
        """Return the ids of all entries that can be found."""
        return {id_ for part in self._parts.values() for id_ in part.postings.ids[part.shown].tolist()}

    def rarity(self, term: str) -> float:
        """Return how much a term (one of `stems`) says: much if few of the entries hold it."""
        word = word_of(term)
        holding = sum(part.live_count(word) for part in self._parts.values())
        return math.log(1 + (self._count - holding + 0.5) / (holding + 0.5))

    def search(self, query: str, most: int, among: Among | None = None) -> list[Hit]:
        """Return the entries that match a query best, at most `most`, the best first and ties by id.

        The query is natural language or anything else: nothing in it is a command. `among` takes an array of ids and
        tells of each if it may be found; the weight of a term is that among all entries all the same.
        """
        if most < 1 or not self._count:
            return []
        weights = {term: self.rarity(term) for term in set(stems(query))}
        # Terms in one order, so that sums do not hang on the order in which segments were added.
        ordered = [(word_of(term), weights[term]) for term in sorted(weights, key=lambda term: (-weights[term], term))]
        average = self._length / self._count or 1.0
        found = [_match(part, ordered, average, among) for part in self._parts.values()]
        ids = np.concatenate([each for each, _ in found])
        scores = np.concatenate([each for _, each in found])
        return [Hit(id_, score) for id_, score in _best(ids, scores, most)]


def _match(
    part: _IndexedSegment, weighted: Sequence[tuple[bytes, float]], average: float, among: Among | None
) -> tuple[Numbers, NDArray[np.float64]]:
    """Return the ids and scores of the entries of a segment that hold a term, are not hidden and may be found."""
    postings = part.postings
    scores = np.zeros(len(postings.ids))
    fixed, by_length = K1 * (1 - B), K1 * B / average
    for word, weight in weighted:
        begin, end = part.run(word)
        if begin < end:
            places, times = postings.places[begin:end], postings.times[begin:end].astype(np.float64)
            scores[places] += weight * (K1 + 1) * times / (times + fixed + by_length * postings.lengths[places])
    found = np.flatnonzero((scores > 0) & part.shown)
    if among is not None:
        found = found[among(postings.ids[found])]
    return postings.ids[found], scores[found]


def _best(ids: Numbers, scores: NDArray[np.float64], most: int) -> Iterator[tuple[int, float]]:
    """Yield the best of some hits, ties by id; of an id that stands in several segments the best score."""
    if len(ids) > most:
        # Twice as many, for ids that stand twice; and all that score as the last of them does.
        wanted = min(len(ids), 2 * most)
        least = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
        kept = scores >= least
        ids, scores = ids[kept], scores[kept]
    order = np.lexsort((ids, -scores))
    seen: set[int] = set()
    for id_, score in zip(ids[order].tolist(), scores[order].tolist(), strict=True):
        if len(seen) == most:
            return
        if id_ not in seen:
            seen.add(id_)
            yield id_, score
