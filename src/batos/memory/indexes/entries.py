"""Entries that an index is built of, and what a document is found by beside its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
