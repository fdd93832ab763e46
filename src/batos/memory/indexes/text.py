"""Find entries by their words (BM25): postings in immutable segments, and the index that a process makes of them."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from batos.errors import IndexDamaged
from batos.memory.indexes.entries import Entry, Hit
from batos.memory.indexes.segment_bytes import (
    check_ascending,
    number_bytes,
    pack,
    read_numbers,
    read_texts,
    text_bytes,
    unpack,
)
from batos.memory.terms import stems

KIND = b"text"
#: BM25: how soon a term's repetitions stop to count, and how much the length of an entry counts.
K1, B = 1.2, 0.75
#: The most times that a term is counted in one entry.
MOST_TIMES = 65535


@dataclass(frozen=True, slots=True)
class _Postings:
    """A segment as it is read: ids and lengths of its entries, and for each term a run of places and of times."""

    ids: array[int]
    lengths: array[int]
    terms: list[str]
    ends: list[int]
    places: array[int]
    times: array[int]

    def runs(self) -> Iterator[tuple[str, int, int]]:
        """Yield each term with the begin and the end of its run."""
        begin = 0
        for term, end in zip(self.terms, self.ends, strict=True):
            yield term, begin, end
            begin = end


def build(entries: Iterable[Entry]) -> bytes:
    """Return a segment of entries; the terms of a title count as those of the text. Of one id the last entry counts.

    The same entries give the same bytes in any order.
    """
    counts = {entry.id: Counter(stems(f"{entry.title}\n{entry.text}")) for entry in entries}
    lengths = {id_: min(count.total(), 0xFFFFFFFF) for id_, count in counts.items()}
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, id_ in enumerate(sorted(counts)):
        for term, times in counts[id_].items():
            postings.setdefault(term, []).append((place, min(times, MOST_TIMES)))
    return _write(lengths, postings)


def merge(segments: Sequence[bytes], gone: Container[int]) -> bytes:
    """Return one segment of all entries of some segments but those that are gone.

    The bytes are those of a segment that was built of these entries at once. Of an id in several segments the last one
    counts.
    """
    read = [_read(segment) for segment in segments]
    source = {id_: number for number, each in enumerate(read) for id_ in each.ids if id_ not in gone}
    place_of = {id_: place for place, id_ in enumerate(sorted(source))}
    lengths: dict[int, int] = {}
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, each in enumerate(read):
        new = [place_of[id_] if source.get(id_) == number else -1 for id_ in each.ids]
        lengths.update((id_, each.lengths[old]) for old, id_ in enumerate(each.ids) if new[old] >= 0)
        for term, begin, end in each.runs():
            kept = [
                (new[place], times)
                for place, times in zip(each.places[begin:end], each.times[begin:end], strict=True)
                if new[place] >= 0
            ]
            if kept:
                postings.setdefault(term, []).extend(kept)
    return _write(lengths, postings)


def _write(lengths: Mapping[int, int], postings: Mapping[str, list[tuple[int, int]]]) -> bytes:
    ids, words = sorted(lengths), sorted(postings)
    runs = [sorted(postings[word]) for word in words]
    return pack(
        KIND,
        (
            number_bytes("q", ids),
            number_bytes("I", (lengths[id_] for id_ in ids)),
            text_bytes(words),
            number_bytes("I", map(len, runs)),
            number_bytes("I", (place for run in runs for place, _ in run)),
            number_bytes("H", (times for run in runs for _, times in run)),
        ),
    )


def _read(segment: bytes) -> _Postings:
    """Return what a segment holds; IndexDamaged if the parts do not fit each other."""
    sections = unpack(KIND, segment, 6)
    ids, lengths = read_numbers("q", sections[0]), read_numbers("I", sections[1])
    sizes = read_numbers("I", sections[3])
    places, times = read_numbers("I", sections[4]), read_numbers("H", sections[5])
    words = read_texts(sections[2], len(sizes))
    if len(ids) != len(lengths) or not len(places) == len(times) == sum(sizes) or 0 in sizes or 0 in times:
        raise IndexDamaged("the parts of a text segment do not fit each other")
    check_ascending(ids)
    if any(one >= other for one, other in pairwise(words)):
        raise IndexDamaged("the words of a text segment are out of order")
    ends, at = [], 0
    for size in sizes:
        check_ascending(places[at : at + size], len(ids))
        at += size
        ends.append(at)
    return _Postings(ids, lengths, words, ends, places, times)


@dataclass(slots=True)
class _IndexedSegment:
    """A segment in the index: where a term's run begins and ends, and the places of entries that are hidden."""

    postings: _Postings
    runs: dict[str, tuple[int, int]]
    hidden: set[int] = field(default_factory=set)

    def place(self, id_: int) -> int | None:
        """Return the place of an entry, None if it is not of this segment."""
        ids = self.postings.ids
        place = bisect_left(ids, id_)
        return place if place < len(ids) and ids[place] == id_ else None

    def live_count(self, term: str) -> int:
        """Return the number of entries that hold a term and are not hidden."""
        begin, end = self.runs.get(term, (0, 0))
        places = self.postings.places
        if begin == end or not self.hidden:
            return end - begin
        if len(self.hidden) > end - begin:
            return sum(place not in self.hidden for place in places[begin:end])
        gone = 0
        for place in self.hidden:
            at = bisect_left(places, place, begin, end)
            gone += at < end and places[at] == place
        return end - begin - gone


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
        postings = _read(segment)
        self.drop(key)
        part = _IndexedSegment(postings, {term: (begin, end) for term, begin, end in postings.runs()})
        self._parts[key] = part
        self._count += len(postings.ids)
        self._length += sum(postings.lengths)
        hidden = self._hidden if len(self._hidden) < len(postings.ids) else self._hidden.intersection(postings.ids)
        for id_ in hidden:
            self._count_hidden(part, id_)

    def drop(self, key: Hashable) -> None:
        """Leave out the segment of a key; an unknown key is no fault."""
        part = self._parts.pop(key, None)
        if part is not None:
            live = [length for place, length in enumerate(part.postings.lengths) if place not in part.hidden]
            self._count -= len(live)
            self._length -= sum(live)

    def hide(self, ids: Iterable[int]) -> None:
        """Hide entries, also such as come later: they are not found and count for nothing."""
        for id_ in ids:
            if id_ not in self._hidden:
                self._hidden.add(id_)
                for part in self._parts.values():
                    self._count_hidden(part, id_)

    def _count_hidden(self, part: _IndexedSegment, id_: int) -> None:
        place = part.place(id_)
        if place is not None:
            part.hidden.add(place)
            self._count -= 1
            self._length -= part.postings.lengths[place]

    def show(self, ids: Iterable[int]) -> None:
        """Show entries again that were hidden."""
        for id_ in ids:
            if id_ in self._hidden:
                self._hidden.remove(id_)
                for part in self._parts.values():
                    place = part.place(id_)
                    if place is not None:
                        part.hidden.remove(place)
                        self._count += 1
                        self._length += part.postings.lengths[place]

    def ids(self) -> set[int]:
        """Return the ids of all entries that can be found."""
        return {id_ for part in self._parts.values() for id_ in part.postings.ids if id_ not in self._hidden}

    def rarity(self, term: str) -> float:
        """Return how much a term (one of `stems`) says: much if few of the entries hold it."""
        holding = sum(part.live_count(term) for part in self._parts.values())
        return math.log(1 + (self._count - holding + 0.5) / (holding + 0.5))

    def search(self, query: str, most: int, among: Callable[[int], bool] | None = None) -> list[Hit]:
        """Return the entries that match a query best, at most `most`, the best first and ties by id.

        The query is natural language or anything else: nothing in it is a command. `among` tells of an id if it may be
        found; the weight of a term is that among all entries all the same.
        """
        if most < 1 or not self._count:
            return []
        weights = {term: self.rarity(term) for term in set(stems(query))}
        # Terms in one order, so that sums do not hang on the order in which segments were added.
        ordered = sorted(weights, key=lambda term: (-weights[term], term))
        found: dict[int, float] = {}
        average = self._length / self._count or 1.0
        for part in self._parts.values():
            for id_, score in _match(part, [(term, weights[term]) for term in ordered], average):
                if score > found.get(id_, 0.0):
                    found[id_] = score
        candidates = (pair for pair in found.items() if among is None or among(pair[0]))
        best = heapq.nsmallest(most, candidates, key=lambda pair: (-pair[1], pair[0]))
        return [Hit(id_, score) for id_, score in best]


def _match(part: _IndexedSegment, weighted: Sequence[tuple[str, float]], average: float) -> Iterator[tuple[int, float]]:
    """Yield the id and score of each entry of a segment that holds a term and is not hidden."""
    postings, found = part.postings, dict[int, float]()
    lengths, fixed, by_length = postings.lengths, K1 * (1 - B), K1 * B / average
    for term, weight in weighted:
        begin, end = part.runs.get(term, (0, 0))
        full = weight * (K1 + 1)
        for place, times in zip(postings.places[begin:end], postings.times[begin:end], strict=True):
            gained = full * times / (times + fixed + by_length * lengths[place])
            found[place] = found.get(place, 0.0) + gained
    for place, score in found.items():
        if place not in part.hidden:
            yield postings.ids[place], score
