"""Choose regions of memories that may be folded: neighbours that nobody has recalled for long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

from batos.memory.records.memory_records import ChunkRange

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
    """Memories that may be folded together, and the reason."""

    reason: Reason
    members: tuple[FoldCandidate, ...]

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
                yield Region("cold", tuple(run))


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
    """Tell whether memories are enough to be folded: several, or one with several parts."""
    if run[0].row.kind == "summary":
        return len(run) >= FEWEST_SUMMARIES
    return len(run) >= FEWEST or run[0].chunks >= FEWEST_PARTS
