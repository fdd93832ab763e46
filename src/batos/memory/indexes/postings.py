"""Words and the ids that hold them: entries that an index is built of, its segments, and their bytes."""

from __future__ import annotations

import re
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.protocol.errors import IndexDamaged

#: The version of the format; a segment of another one is refused, and is built again from its entries.
VERSION = 1
#: The most bytes that a segment may hold unpacked, so that a short damaged one does not fill the memory.
MOST_BYTES = 1 << 31

_HEADER = struct.Struct("<4s4sBBHIQ")
_MARK = b"BATX"


def pack(kind: bytes, sections: Sequence[bytes], level: int = 3) -> bytes:
    """Return a segment of a kind (four bytes) that holds these sections, deflated at a level (0: not at all)."""
    lengths = struct.pack(f"<{len(sections)}Q", *map(len, sections))
    body = b"".join((lengths, *sections))
    packed = zlib.compress(body, level)
    return _HEADER.pack(_MARK, kind, VERSION, len(sections), 0, zlib.crc32(packed), len(body)) + packed


def unpack(kind: bytes, segment: bytes, count: int) -> list[memoryview]:
    """Return the `count` sections of a segment of a kind.

    Bytes that are no such segment raise IndexDamaged: cut, changed, of another kind or version.
    """
    if len(segment) < _HEADER.size:
        raise IndexDamaged(f"a segment of {len(segment)} bytes has no whole header")
    mark, found, version, sections, unused, checksum, size = _HEADER.unpack_from(segment)
    if (mark, found, sections, unused) != (_MARK, kind, count, 0):
        raise IndexDamaged(f"these bytes are no segment of the kind {kind.decode()}")
    if version != VERSION:
        raise IndexDamaged(f"the segment has the format {version}, and this program reads {VERSION}")
    packed = memoryview(segment)[_HEADER.size :]
    if zlib.crc32(packed) != checksum or not 8 * count <= size <= MOST_BYTES:
        raise IndexDamaged("the bytes of a segment are not those that were written")
    return _split(_inflate(packed, size), count)


def _inflate(packed: memoryview, size: int) -> memoryview:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed, size + 1)
    except zlib.error as error:
        raise IndexDamaged("the bytes of a segment cannot be unpacked") from error
    if len(body) != size or not inflater.eof:
        raise IndexDamaged("a segment does not have the length that its header tells")
    return memoryview(body)


def _split(body: memoryview, count: int) -> list[memoryview]:
    lengths = struct.unpack_from(f"<{count}Q", body)
    if sum(lengths) + 8 * count != len(body):
        raise IndexDamaged("the sections of a segment do not fill it")
    sections, at = [], 8 * count
    for length in lengths:
        sections.append(body[at : at + length])
        at += length
    return sections


def number_bytes(kind: str, numbers: NDArray[Any]) -> bytes:
    """Return numbers as a section; `kind` is their type as numpy names it, such as `<u4`.

    The first bytes of all numbers stand together, then the second ones and so on: most are zeros, which pack well.
    """
    found = numbers.astype(kind)
    planes: bytes = found.view(np.uint8).reshape(-1, found.itemsize).T.tobytes()
    return planes


def read_numbers(kind: str, section: memoryview) -> NDArray[Any]:
    """Return the numbers of a section that `number_bytes` wrote.

    Raises: IndexDamaged: the section ends within a number.
    """
    found = np.dtype(kind)
    if len(section) % found.itemsize:
        raise IndexDamaged("a section of numbers ends within a number")
    planes = np.frombuffer(section, np.uint8).reshape(found.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(found).ravel().astype(found.newbyteorder("="), copy=False)


#: Marks between the words of a path, and the parts of one that are words to find it by.
_BETWEEN: Final = re.compile(r"[\W_]+")
_MOST_NAMED: Final = 2
#: Ids, or numbers of chunks.
Numbers: TypeAlias = NDArray[np.int64]
#: Tells which of an array of ids may be found.
Among: TypeAlias = Callable[[Numbers], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A chunk to be found: its id, the title of what it belongs to ("" where that has none), and its text.

    `heading` is what stands above it in a document; the chunk that `is_first` stands for the document. `beside` are the
    words of its path, and its day.
    """

    id: int
    title: str
    text: str
    heading: str = ""
    is_first: bool = True
    beside: str = ""


def words_beside(source: str, day: str) -> str:
    """Return what a document is also found by: the end of the path that it came from, and its day.

    >>> words_beside("/home/ann/house/heat_pump.md", "2026-03-04T10:00:00.000Z")
    'house heat pump md 2026-03-04'
    """
    path = source.partition("#")[0] if "/" in source or "." in source else ""
    named = _BETWEEN.sub(" ", " ".join(path.rsplit("/", 2)[-_MOST_NAMED:]))
    return f"{named} {day[:10]}".strip()


#: The short name, for who builds indexes. (The journal has a class of that name.)
Entry: TypeAlias = IndexEntry


#: The most times that a word is counted in one entry, and the most that an entry's length is.
MOST_TIMES, MOST_LENGTH = 65535, 0xFFFFFFFF

_LINE_END: Final = 10
#: The beginning of words that are looked for together.
_ALIKE: Final = 3


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

    def runs_of(self, words: Iterable[bytes]) -> list[tuple[int, int]]:
        """Return where the runs of those of some words begin and end that entries hold.

        Words with one beginning are looked for together: most forms of a word are held by nothing.
        """
        alike: dict[bytes, list[bytes]] = {}
        for word in words:
            alike.setdefault(word[:_ALIKE], []).append(word)
        found: list[tuple[int, int]] = []
        for several in alike.values():
            beginning = _common_beginning(several)
            first = bisect_left(range(self.count), beginning, key=self.word)
            last = bisect_right(range(self.count), beginning, lo=first, key=lambda at: self.word(at)[: len(beginning)])
            held = self.words[self.starts[first] : max(self.starts[first], self.starts[last] - 1)].split(b"\n")
            wanted = frozenset(several)
            found += [
                (int(self.runs[at]), int(self.runs[at + 1])) for at, each in enumerate(held, first) if each in wanted
            ]
        return found

    def word_list(self) -> list[bytes]:
        """Return all words, in order."""
        return self.words.split(b"\n") if self.count else []


def _common_beginning(words: Collection[bytes]) -> bytes:
    """Return what all of some words begin with: what the first and the last of them do."""
    least, most = min(words), max(words)
    return least[: next((at for at, byte in enumerate(least) if most[at : at + 1] != bytes((byte,))), len(least))]


def word_of(term: str) -> bytes:
    """Return a term as segments hold it."""
    return term.encode("utf-8", "surrogatepass")


def build(kind: bytes, counts: Mapping[int, Mapping[str, int]]) -> bytes:
    """Return a segment of a kind of what each id holds: words, and how often.

    The same counts give the same bytes in any order.
    """
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
    lengths = np.array([sum(counts[id_].values()) for id_ in ids], np.int64)
    triples = _Triples(
        order[np.array(words, np.int64)],
        np.repeat(np.arange(len(ids)), np.array(held, np.int64)),
        np.minimum(np.array(times, np.int64), MOST_TIMES).astype(np.uint16),
    )
    return _write(
        kind, np.array(ids, np.int64), np.minimum(lengths, MOST_LENGTH).astype(np.uint32), sorted(given), triples
    )


def merge(kind: bytes, segments: Sequence[bytes], gone: Container[int]) -> bytes:
    """Return one segment of all entries of some segments but those that are gone.

    The bytes are those of a segment that was built of these entries at once. Of an id in several segments the last one
    counts.
    """
    read = [read_segment(kind, segment) for segment in segments]
    ids = np.concatenate([np.empty(0, np.int64), *(each.ids for each in read)])
    lengths = np.concatenate([np.empty(0, np.uint32), *(each.lengths for each in read)])
    _, last = np.unique(ids[::-1], return_index=True)
    rows = len(ids) - 1 - last
    rows = rows[np.array([id_ not in gone for id_ in ids[rows].tolist()], bool)]
    places: Numbers = np.full(len(ids), -1, np.int64)
    places[rows] = np.arange(len(rows))
    words = sorted({word for each in read for word in each.word_list()})
    number_of = {word: number for number, word in enumerate(words)}
    triples, begin = [_Triples(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint16))], 0
    for each in read:
        own = np.array([number_of[word] for word in each.word_list()], np.int64)
        new = places[begin + each.places.astype(np.int64)]
        kept = new >= 0
        triples.append(_Triples(np.repeat(own, np.diff(each.runs))[kept], new[kept], each.times[kept]))
        begin += len(each.ids)
    return _write(kind, ids[rows], lengths[rows], words, _Triples(*map(np.concatenate, zip(*triples, strict=True))))


class _Triples(NamedTuple):
    """Postings as they are collected: the number of a word, the place of an entry, and how often it holds the word."""

    words: Numbers
    places: Numbers
    times: NDArray[np.uint16]


def _write(kind: bytes, ids: Numbers, lengths: NDArray[np.uint32], words: Sequence[bytes], triples: _Triples) -> bytes:
    """Return the segment of these; a word that nothing holds is left out."""
    # Stable, since what several segments hold is in order already, segment by segment.
    order = np.argsort(triples.words * max(1, len(ids)) + triples.places, kind="stable")
    sizes = np.bincount(triples.words, minlength=len(words))
    held = [word for word, size in zip(words, sizes.tolist(), strict=True) if size]
    sizes = sizes[sizes > 0]
    places = triples.places[order]
    return pack(
        kind,
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
        raise IndexDamaged("the places of a segment of words are out of order")
    led = np.cumsum(steps, dtype=np.int64)
    return led - np.repeat(led[runs[:-1]] - steps[runs[:-1]], np.diff(runs))


def holds_any(kind: bytes, segment: bytes, words: Collection[bytes]) -> bool:
    """Test if a segment of a kind has one of some words, without reading the rest of it."""
    held = b"\n" + bytes(unpack(kind, segment, 6)[2]) + b"\n"
    return any(b"\n" + word + b"\n" in held for word in words)


def read_segment(kind: bytes, segment: bytes) -> Postings:
    """Return what a segment of a kind holds; IndexDamaged if the parts do not fit each other."""
    sections = unpack(kind, segment, 6)
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
        raise IndexDamaged("the parts of a segment of words do not fit each other")
    places = _places(steps, runs)
    found = Postings(ids, lengths, words, starts, runs, places.astype(np.uint32), times)
    listed = found.word_list()
    if np.any(ids[1:] <= ids[:-1]) or any(one >= other for one, other in pairwise(listed)):
        raise IndexDamaged("the ids or the words of a segment of words are out of order")
    if len(places) and int(places.max()) >= len(ids):
        raise IndexDamaged("a place of a segment of words names nothing")
    return found
