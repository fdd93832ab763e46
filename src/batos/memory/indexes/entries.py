"""Entries that an index is built of, and hits that a search of it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Ids, or numbers of chunks.
Numbers: TypeAlias = NDArray[np.int64]
#: Tells which of an array of ids may be found.
Among: TypeAlias = Callable[[Numbers], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A chunk to be found: its id, the title of what it belongs to ("" where that has none), and its text.

    `heading` is what stands above it in a document; the chunk that `is_first` stands for the document.
    """

    id: int
    title: str
    text: str
    heading: str = ""
    is_first: bool = True


#: The short name, for who builds indexes. (The journal has a class of that name.)
Entry: TypeAlias = IndexEntry


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a search found, and how well it matches: comparable within one search of one index."""

    id: int
    score: float
