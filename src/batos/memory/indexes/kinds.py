"""The kinds of index over what is remembered: how the segments of each are built and merged."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from batos.memory.indexes import links, postings, text, vectors
from batos.memory.indexes.postings import Entry

Build: TypeAlias = Callable[[Iterable[Entry]], bytes]
Merge: TypeAlias = Callable[[Sequence[bytes], Container[int]], bytes]


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of index. `build` makes a segment of entries; None: its segments come later, from elsewhere.

    `merge` makes one segment of several without the entries that are gone, and `empty` is a segment of no entries.
    """

    build: Build | None
    merge: Merge
    empty: bytes


KINDS: Final[Mapping[str, IndexKind]] = {
    "text": IndexKind(text.build, partial(postings.merge, text.KIND), text.build(())),
    "links": IndexKind(links.build, partial(postings.merge, links.KIND), links.build(())),
    "vectors": IndexKind(None, vectors.merge, vectors.EMPTY),
}


def build_each(entries: Sequence[Entry]) -> dict[str, bytes]:
    """Return a segment of entries for each index that is built of them."""
    return {name: kind.build(entries) for name, kind in KINDS.items() if kind.build is not None}


def merge(kind: str, segments: Sequence[bytes], gone: Container[int] = frozenset()) -> bytes:
    """Return one segment of several of a kind, without the entries that are gone; b"" if none is left."""
    merged = KINDS[kind].merge(segments, gone)
    return b"" if merged == KINDS[kind].empty else merged


def without(kind: str, segment: bytes, gone: Container[int]) -> bytes:
    """Return a segment without some entries: the same bytes where it has none of them, b"" where it has no others."""
    return merge(kind, [segment], gone)
