"""The segments of the indexes over what is remembered, the chunks of each, and numbers kept as ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree

from batos.image import roots
from batos.image.records import Segment
from batos.image.roots import Root
from batos.memory.indexes import kinds

if TYPE_CHECKING:
    #: First number of each range to its last; ranges neither touch nor overlap: a million in a row are one entry.
    NumberRanges: TypeAlias = IOBTree[int]
else:
    NumberRanges = IOBTree


def add_range(ranges: NumberRanges, first: int, last: int) -> None:
    """Add the numbers from the first to the last.

    >>> add_range(some := IOBTree({1: 3, 9: 9}), 4, 6)
    >>> dict(some)
    {1: 6, 9: 9}
    """
    for begin, end in list(_meeting(ranges, first - 1, last + 1)):
        first, last = min(first, begin), max(last, end)
        del ranges[begin]
    ranges[first] = last


def remove_range(ranges: NumberRanges, first: int, last: int) -> None:
    """Take the numbers from the first to the last out, as far as they are there.

    >>> remove_range(some := IOBTree({1: 9}), 3, 4)
    >>> dict(some)
    {1: 2, 5: 9}
    """
    for begin, end in list(_meeting(ranges, first, last)):
        del ranges[begin]
        if begin < first:
            ranges[begin] = first - 1
        if end > last:
            ranges[last + 1] = end


def has_number(ranges: NumberRanges, number: int) -> bool:
    """Test if a number is there."""
    return has_any(ranges, number, number)


def has_any(ranges: NumberRanges, first: int, last: int) -> bool:
    """Test if any number from the first to the last is there."""
    return any(True for _ in _meeting(ranges, first, last))


def difference(ranges: NumberRanges, others: NumberRanges) -> Iterator[tuple[int, int]]:
    """Yield the ranges of numbers that are in the one set and not in the other.

    >>> list(difference(IOBTree({1: 9}), IOBTree({3: 4, 9: 12})))
    [(1, 2), (5, 8)]
    """
    for first, last in ranges.items():
        for begin, end in _meeting(others, first, last):
            if first < begin:
                yield first, begin - 1
            first = end + 1
        if first <= last:
            yield first, last


def _meeting(ranges: NumberRanges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that have a number from the first to the last."""
    if ranges and ranges.minKey() < first and ranges[before := ranges.maxKey(first - 1)] >= first:
        yield before, ranges[before]
    yield from ranges.items(first, last)


#: The segments of vectors: `about` is the digest of the model that made them.
VECTORS: Final = "vectors"


#: Changes that are kept, so that who holds documents in memory need not read all of them again.
MOST_TOUCHED: Final = 64


class SegmentRow(NamedTuple):
    """A segment as the image lists it, so that nobody reads its bytes to know whether they are wanted.

    `about` is what the kind's segments differ in (of vectors: the digest of the model), `first` and `last` are the
    numbers between which its chunks are, `size` is the length of its bytes.
    """

    kind: str
    about: str
    first: int
    last: int
    size: int
    segment: Segment


class NewSegment(NamedTuple):
    """A segment that is to be added."""

    kind: str
    data: bytes
    first: int
    last: int
    about: str = ""


def segments_of(root: Root, kind: str | None = None) -> Iterator[tuple[int, SegmentRow]]:
    """Yield the segments of a kind (None: of all) by their numbers, the oldest first."""
    for number, found in trees_of(root)["segments"].items():
        row = SegmentRow(*found)
        if kind in (None, row.kind):
            yield number, row


def change_of(root: Root) -> int:
    """Return a number that grows with each change of what is remembered."""
    return int(trees_of(root)["change"])


def count_change(root: Root, touched: Sequence[tuple[int, int]] = ()) -> None:
    """Say that what is remembered has changed, so that who holds indexes in memory looks.

    `touched` tells which documents came, went or have another standing: from and to which number their first chunk may
    be.
    """
    kept = trees_of(root)
    kept["change"] += 1
    if touched:
        kept["touched"][kept["change"]] = tuple(touched)
        for oldest in list(kept["touched"].keys())[:-MOST_TOUCHED]:
            del kept["touched"][oldest]
            kept["touched_from"] = oldest


def touched_since(root: Root, change: int) -> list[tuple[int, tuple[tuple[int, int], ...]]] | None:
    """Return what was touched after a change, with the number of each change; None if that is not known any more."""
    kept = trees_of(root)
    if change < kept["touched_from"]:
        return None
    return list(kept["touched"].items(change + 1))


def add_segment(root: Root, new: NewSegment) -> None:
    """Add a segment; one without bytes is left out."""
    kept = trees_of(root)
    if new.data:
        segment = Segment(new.kind, new.data)
        row = SegmentRow(new.kind, new.about, new.first, new.last, len(new.data), segment)
        kept["segments"][kept["next_segment"]] = tuple(row)
        kept["next_segment"] += 1
    count_change(root)


def replace_segments(root: Root, numbers: Sequence[int], merged: NewSegment) -> bool:
    """Put one segment in the place of several; return False if one of them is gone meanwhile."""
    kept = trees_of(root)
    if any(number not in kept["segments"] for number in numbers):
        return False
    for number in numbers:
        del kept["segments"][number]
    add_segment(root, merged)
    return True


def take_out(root: Root, gone: Sequence[range]) -> None:
    """Take chunks out of every index: the segments that hold one of them are written anew, once each."""
    kept = trees_of(root)
    for each in gone:
        remove_range(kept["present"], each.start, each.stop - 1)
        for embedded in kept["embedded"].values():
            remove_range(embedded, each.start, each.stop - 1)
    for number, row in list(segments_of(root)):
        within = {one for each in gone for one in each if row.first <= one <= row.last}
        if within and (less := kinds.without(row.kind, row.segment.data, within)) != row.segment.data:
            del kept["segments"][number]
            add_segment(root, NewSegment(row.kind, less, row.first, row.last, row.about))
    count_change(root)


def note_present(root: Root, first: int, last: int) -> None:
    """Write down that there are chunks of these numbers."""
    if first <= last:
        add_range(trees_of(root)["present"], first, last)


def present_ranges(root: Root) -> Iterator[tuple[int, int]]:
    """Yield the numbers of all chunks as ranges, first and last."""
    yield from trees_of(root)["present"].items()


def note_embedded(root: Root, digest: str, numbers: Sequence[int]) -> None:
    """Write down that chunks have a vector of a model."""
    embedded = trees_of(root)["embedded"]
    if digest not in embedded:
        embedded[digest] = IOBTree()
    for first, last in as_ranges(numbers):
        add_range(embedded[digest], first, last)


def missing_vectors(root: Root, digest: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the chunks that have no vector of a model, as ranges; the cost is that of the ranges."""
    kept = trees_of(root)
    yield from difference(kept["present"], kept["embedded"].get(digest) or IOBTree())


def embedded_digests(root: Root) -> list[str]:
    """Return the digests of the models that some chunk has a vector of."""
    return list(trees_of(root)["embedded"])


def drop_vectors(root: Root, digest: str) -> int:
    """Drop all vectors of a model; return how many segments went."""
    kept = trees_of(root)
    gone = [number for number, row in segments_of(root, VECTORS) if row.about == digest]
    for number in gone:
        del kept["segments"][number]
    if digest in kept["embedded"]:
        del kept["embedded"][digest]
    count_change(root)
    return len(gone)


def as_ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield numbers as ranges.

    >>> list(as_ranges([7, 2, 3, 8]))
    [(2, 3), (7, 8)]
    """
    ranges: NumberRanges = IOBTree()
    for number in numbers:
        add_range(ranges, number, number)
    yield from ranges.items()


def trees_of(root: Root) -> Any:
    """Return the records of what is remembered."""
    return root[roots.MEMORIES]


def make_tree(root: Root, name: str) -> Any:
    """Return a tree among these records that comes with what is first written into it."""
    kept = trees_of(root)
    if name not in kept:
        kept[name] = OOBTree()
    return kept[name]


def find_tree(root: Root, name: str) -> Any:
    """Return such a tree to be read: an empty one where nothing was written into it yet."""
    return trees_of(root).get(name) or OOBTree()


def items_beginning(tree: Any, beginning: str) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a tree that begin so, with their values.

    >>> list(items_beginning(OOBTree({"a": 1, "ab": 2, "b": 3}), "a"))
    [('a', 1), ('ab', 2)]
    """
    for key, value in tree.items(beginning):
        if not key.startswith(beginning):
            return
        yield key, value
