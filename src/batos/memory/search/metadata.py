"""Find documents by owner, scope, kind, standing, source and time, within what a question may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.memory.indexes.postings import Numbers
from batos.memory.records.memory_records import ChunkRange, MemoryKind
from batos.memory.records.memory_standings import Standing

#: The standings of what is recalled where nobody asks for history.
CURRENT: Final[frozenset[Standing]] = frozenset({"current"})
#: The same with the parts that summaries stand for.
WITH_SUMMARISED: Final[frozenset[Standing]] = CURRENT | {"summarised"}

#: The kind of a message in a mailbox or a file of chats. Its source is the file's path, `#` and its place in the file.
MESSAGE: Final[MemoryKind] = "turn"

#: The kinds of all memories but summaries of others.
OWN_WORDS: Final[frozenset[MemoryKind]] = frozenset({"document", "mission", "turn", "fact"})

#: The same for a question that asks for what no longer holds.
WITH_HISTORY: Final[frozenset[Standing]] = frozenset({"current", "superseded"})


@dataclass(frozen=True, slots=True)
class MemoryReach:
    """The memories that a question may use: of one user (None: of all), and where others are given, only those.

    `since` and `until` are moments (ISO 8601, UTC): from the first on, and before the second. A source that is a
    mailbox or a file of chats stands for all its messages.
    """

    user: str | None
    scopes: frozenset[str] | None = None
    kinds: frozenset[MemoryKind] | None = None
    standings: frozenset[Standing] | None = CURRENT
    sources: frozenset[str] | None = None
    missions: frozenset[str] | None = None
    personas: frozenset[str] | None = None
    evidence: frozenset[bool] | None = None
    since: str = ""
    until: str = ""

    def wanted_values(self) -> dict[str, frozenset[object]]:
        """Return the values that a range may have, by its field; a field that is not there may have any."""
        wanted: dict[str, frozenset[Any] | None] = {
            "user": None if self.user is None else frozenset({self.user}),
            "scope": self.scopes,
            "kind": self.kinds,
            "standing": self.standings,
            "mission": self.missions,
            "persona": self.personas,
            "is_evidence": self.evidence,
        }
        return {name: values for name, values in wanted.items() if values is not None}

    def wants(self, standing: Standing) -> bool:
        """Test if memories of a standing are within reach."""
        return self.standings is None or standing in self.standings

    def holds(self, found: ChunkRange) -> bool:
        """Test if a document is within reach."""
        return (
            (self.sources is None or self._is_from(found, self.sources))
            and all(getattr(found, name) in values for name, values in self.wanted_values().items())
            and self.since <= found.at
            and (not self.until or found.at < self.until)
        )

    @staticmethod
    def _is_from(found: ChunkRange, sources: frozenset[str]) -> bool:
        return found.source in sources or (
            found.kind == MESSAGE and found.source.startswith(message_beginnings(sources))
        )


def message_beginnings(sources: Iterable[str]) -> tuple[str, ...]:
    """Return what the sources of the messages in some files begin with: the file's path and `#`."""
    return tuple(f"{source}#" for source in sources)


#: The fields that are compared whole, a column for each.
FIELDS: Final = ("user", "scope", "kind", "standing", "source", "mission", "persona", "is_evidence")
#: Bytes of a moment: `2026-11-24T10:00:00.000000Z` and some more.
_MOMENT: Final = 32
_ROWS: Final = 1024


class MetadataIndex:
    """A row for each document: the numbers of its first and last chunk, its moment, and a code for each field."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._free: list[int] = []
        self._codes: dict[object, int] = {}
        self._used = 0
        self._spans: NDArray[np.int64] = np.zeros((_ROWS, 2), np.int64)
        self._fields: NDArray[np.int32] = np.zeros((_ROWS, len(FIELDS)), np.int32)
        self._moments: NDArray[np.bytes_] = np.zeros(_ROWS, f"S{_MOMENT}")
        self._held: NDArray[np.bool_] = np.zeros(_ROWS, bool)

    def put(self, first: int, row: ChunkRange) -> None:
        """Add a document by the number of its first chunk, or change it."""
        place = self._places.get(first)
        if place is None:
            place = self._places[first] = self._free.pop() if self._free else self._new_row()
        self._spans[place] = first, row.last
        self._fields[place] = [self._codes.setdefault(getattr(row, name), len(self._codes)) for name in FIELDS]
        self._moments[place] = row.at.encode("ascii", "replace")[:_MOMENT]
        self._held[place] = True

    def drop(self, begin: int, end: int) -> None:
        """Leave out the documents whose first chunk is from one number to another."""
        firsts = self._spans[: self._used, 0]
        for place in np.flatnonzero(self._held[: self._used] & (begin <= firsts) & (firsts <= end)).tolist():
            del self._places[int(self._spans[place, 0])]
            self._held[place] = False
            self._free.append(place)

    def spans(self, reach: MemoryReach) -> tuple[Numbers, Numbers]:
        """Return the first and the last chunk of each document within reach, in no order."""
        rows = self._held[: self._used].copy()
        for name, values in reach.wanted_values().items():
            rows &= self._have(name, values)
        if reach.sources is not None:
            rows &= self._are_from(reach.sources)
        moments = self._moments[: self._used]
        if reach.since:
            rows &= moments >= reach.since.encode("ascii", "replace")
        if reach.until:
            rows &= moments < reach.until.encode("ascii", "replace")
        found = self._spans[: self._used][rows]
        return found[:, 0], found[:, 1]

    def _are_from(self, sources: frozenset[str]) -> NDArray[np.bool_]:
        """Tell of each row if it has one of some sources, or is a message in one of these files."""
        messages = self._have("kind", (MESSAGE,))
        column = self._fields[: self._used, FIELDS.index("source")]
        inside: NDArray[np.bool_] = np.zeros(self._used, bool)
        if messages.any():
            begins = message_beginnings(sources)
            codes = [code for value, code in self._codes.items() if isinstance(value, str) and value.startswith(begins)]
            inside = messages & np.isin(column, codes)
        return self._have("source", sources) | inside

    def _have(self, name: str, values: Iterable[object]) -> NDArray[np.bool_]:
        """Tell of each row if a field has one of some values."""
        column = self._fields[: self._used, FIELDS.index(name)]
        found: NDArray[np.bool_] = np.zeros(self._used, bool)
        for code in (self._codes[value] for value in values if value in self._codes):
            found |= column == code  # few values: faster than numpy's own search for many
        return found

    def _new_row(self) -> int:
        if self._used == len(self._held):
            self._spans, self._fields = _longer(self._spans), _longer(self._fields)
            self._moments, self._held = _longer(self._moments), _longer(self._held)
        self._used += 1
        return self._used - 1


def index_of(rows: Iterable[tuple[int, ChunkRange]]) -> MetadataIndex:
    """Return the index of some documents."""
    made = MetadataIndex()
    for first, row in rows:
        made.put(first, row)
    return made


def _longer(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column with room for twice as many rows."""
    return np.concatenate((column, np.zeros_like(column)))
