"""Choose regions of memories that may be folded: neighbours that nobody has recalled for long, by counts of recalls."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.image import roots
from batos.image.roots import Root
from batos.memory.indexes.postings import Numbers, Postings
from batos.memory.records import memory_archives
from batos.memory.records.memory_records import ChunkRange
from batos.memory.records.memory_segments import trees_of
from batos.objects.prototype import own_slots

#: The most memories of a region, and the most parts of one that has several.
MOST_DOCUMENTS, MOST_CHUNKS = 16, 64
#: The fewest memories of a region, the fewest summaries, and the fewest parts of a single memory.
FEWEST, FEWEST_SUMMARIES, FEWEST_PARTS = 2, 8, 5

#: A region is folded since nobody recalls it, or since its memories say the same.
Reason: TypeAlias = Literal["cold", "redundant"]
#: The values that memories of one region have in common, since their summary has the same ones.
GroupKey: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoldCandidate:
    """A memory that may be folded: its first part, its range, and when it was last recalled, else remembered."""

    first: int
    row: ChunkRange
    used: str

    @property
    def chunks(self) -> int:
        """Return the number of its parts."""
        return self.row.last - self.first + 1

    def group(self) -> GroupKey:
        """Return what it has in common with others of a region, beside the place that it came from."""
        row = self.row
        conversation = row.conversation if row.kind in {"turn", "mission"} else ""
        return (row.user, row.scope, row.kind, row.trust, str(row.is_evidence), conversation)

    def place(self) -> str:
        """Return the folder that a document came from; "" for other memories."""
        return str(PurePath(self.row.source).parent) if self.row.kind == "document" and self.row.source else ""


@dataclass(frozen=True, slots=True)
class Region:
    """Memories that may be folded together, and the reason.

    `before` is the moment since which nobody has recalled them; `alike` has, by their first parts, how far they say the
    same as the first of them.
    """

    reason: Reason
    members: tuple[FoldCandidate, ...]
    before: str = ""
    alike: Mapping[int, float] = field(default_factory=dict)

    def measures(self) -> tuple[str | float, ...]:
        """Return what was measured of each memory: how far it says the same as the first, or when it was last used."""
        return tuple(self.alike.get(each.first, each.used) for each in self.members)

    @property
    def chunks(self) -> int:
        """Return the number of all parts."""
        return sum(each.chunks for each in self.members)


def cold_regions(candidates: Iterable[FoldCandidate], before: str) -> Iterator[Region]:
    """Yield the regions of memories that nobody has recalled since a moment, neighbours together.

    >>> row = ChunkRange(9, "d-1", "ann", "default", "document", "current", "user", "2026-01-01", "", "", "", "")
    >>> [region.chunks for region in cold_regions([FoldCandidate(1, row, "2026-01-01")], "2026-02-01")]
    [9]
    """
    groups: dict[GroupKey, list[FoldCandidate]] = {}
    for each in candidates:
        if each.used < before and each.chunks:
            groups.setdefault((*each.group(), each.place()), []).append(each)
    for members in groups.values():
        for run in split(sorted(members, key=lambda each: each.first)):
            if is_worth(run):
                yield Region("cold", tuple(run), before)


def split(members: Sequence[FoldCandidate]) -> Iterator[list[FoldCandidate]]:
    """Yield memories in runs of at most so many memories and parts; one with more parts stands alone."""
    run: list[FoldCandidate] = []
    for each in members:
        full = len(run) == MOST_DOCUMENTS or sum(one.chunks for one in run) + each.chunks > MOST_CHUNKS
        if run and full:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def is_worth(run: Sequence[FoldCandidate]) -> bool:
    """Test if memories are enough to be folded: several, or one with several parts."""
    if run[0].row.kind == "summary":
        return len(run) >= FEWEST_SUMMARIES
    return len(run) >= FEWEST or run[0].chunks >= FEWEST_PARTS


# -- memories that say nearly the same, by sketches of the words that the index has of them


#: Numbers of a sketch, in bands: memories that agree in one band are compared.
BANDS, ROWS = 5, 4
#: The share of a sketch in which two memories agree that say nearly the same.
ALIKE: Final = 0.7
#: Rows that are compared with a first one together.
_AT_ONCE: Final = 1_024
#: Rows that agree in a band with others, and say nearly the same as none of these: after so many the others are left.
_MOST_LONE: Final = 1_024

Sketches: TypeAlias = NDArray[np.uint32]

_NONE: Final = np.uint32(0xFFFFFFFF)


def sketch(segments: Iterable[Postings], firsts: Numbers, lasts: Numbers) -> Sketches:
    """Return a sketch of the words of each memory, whose parts have the numbers from a first to a last one, in order.

    Two memories agree in about as many numbers of their sketches as the share of their words is that both have.
    """
    found: Sketches = np.full((len(firsts), BANDS * ROWS), _NONE, np.uint32)
    for segment in segments:
        rows: Numbers = np.searchsorted(firsts, segment.ids, side="right").astype(np.int64) - 1
        if not len(firsts):
            break
        held: NDArray[np.bool_] = np.asarray((rows >= 0) & (segment.ids <= lasts[np.maximum(rows, 0)]))
        if not np.any(held):
            continue
        memories = rows[segment.places]
        kept = np.flatnonzero(held[segment.places])
        order = kept[np.argsort(memories[kept], kind="stable")]
        whose = memories[order]
        begins = np.flatnonzero(np.diff(whose, prepend=-1))
        words = np.repeat(np.arange(segment.count), np.diff(segment.runs))[order]
        codes = np.fromiter((zlib.crc32(each) for each in segment.word_list()), np.uint32, segment.count)
        for column in range(BANDS * ROWS):
            least = np.minimum.reduceat(_mix(codes, column)[words], begins)
            at = whose[begins]
            found[at, column] = np.minimum(found[at, column], least)
    return found


def _mix(codes: NDArray[np.uint32], column: int) -> NDArray[np.uint32]:
    """Return other numbers of words, in another order for each column."""
    mixed = (codes ^ np.uint32((0x9E3779B9 * (column + 1)) & 0xFFFFFFFF)).astype(np.uint64)
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        mixed = ((mixed ^ (mixed >> np.uint64(15))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return (mixed ^ (mixed >> np.uint64(13))).astype(np.uint32)


def redundant_regions(candidates: Sequence[FoldCandidate], sketches: Sketches) -> Iterator[Region]:
    """Yield regions of memories of one group that say nearly the same as the first of them, each memory once."""
    taken: set[int] = set()
    for rows in _alike(candidates, sketches):
        left, lone = [row for row in rows if row not in taken], 0
        while len(left) > 1 and lone < _MOST_LONE:
            center, *others = left
            chosen, chunks = [center], candidates[center].chunks
            for row in _near(center, others, sketches):
                if len(chosen) == MOST_DOCUMENTS or chunks == MOST_CHUNKS:
                    break
                if chunks + candidates[row].chunks <= MOST_CHUNKS:
                    chosen.append(row)
                    chunks += candidates[row].chunks
            if len(chosen) > 1:
                taken.update(chosen)
                shares = np.mean(sketches[chosen] == sketches[center], axis=1).tolist()
                members = tuple(candidates[row] for row in chosen)
                alike = {each.first: share for each, share in zip(members, shares, strict=True)}
                yield Region("redundant", members, alike=alike)
            lone += len(chosen) == 1
            left = [row for row in others if row not in taken]


def _near(center: int, others: Sequence[int], sketches: Sketches) -> Iterator[int]:
    """Yield those of some rows that say nearly the same as a first one, some rows at a time."""
    for begin in range(0, len(others), _AT_ONCE):
        rows = np.array(others[begin : begin + _AT_ONCE])
        yield from rows[np.mean(sketches[rows] == sketches[center], axis=1) >= ALIKE].tolist()


def _alike(candidates: Sequence[FoldCandidate], sketches: Sketches) -> Iterator[list[int]]:
    """Yield the rows of memories of one group that agree in a band."""
    known = np.flatnonzero(np.any(sketches != _NONE, axis=1)).tolist()
    for band in range(BANDS):
        buckets: dict[tuple[GroupKey, bytes], list[int]] = {}
        for row in known:
            key = candidates[row].group(), sketches[row, band * ROWS : (band + 1) * ROWS].tobytes()
            buckets.setdefault(key, []).append(row)
        yield from (rows for rows in buckets.values() if len(rows) > 1)


def count_recalls(root: Root, recalled: Mapping[str, int], at: str) -> None:
    """Count that memories were recalled so often, the last time at a moment; those that are gone are left out.

    A recall of what a summary stands for counts for the summary.
    """
    recalls = trees_of(root)["recalls"]
    for name, times in recalled.items():
        document = root[roots.DOCUMENTS].get(name)
        while document is not None and (above := memory_archives.summary_of(document)):
            document = root[roots.DOCUMENTS].get(above)
        if document is not None:
            first = own_slots(document)["chunks"][0]
            before, last = recalls.get(first, (0, ""))
            recalls[first] = (before + times, max(last, at))


def find_last_recalls(root: Root) -> dict[int, str]:
    """Return when memories were last recalled, by the numbers of their first parts."""
    return {first: last for first, (_, last) in trees_of(root).get("recalls", {}).items()}


def shown_memories(provenance: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names of the memories that a mission was shown."""
    return (each["memory"] for each in provenance.get("recalled", ()) if "memory" in each)


class RecallTally:
    """Notes recalls in memory until somebody writes them: a read changes nothing of the image."""

    def __init__(self) -> None:
        self._noted: Counter[str] = Counter()

    def note(self, names: Iterable[str]) -> None:
        """Note that memories were recalled."""
        self._noted.update(set(names))

    def take(self) -> dict[str, int]:
        """Return what was noted, and begin anew."""
        taken, self._noted = dict(self._noted), Counter()
        return taken
