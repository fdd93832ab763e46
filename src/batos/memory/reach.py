"""Holds what a question may use of what is remembered: whose memories, of which scopes, kinds, standings and times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

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
