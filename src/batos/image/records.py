"""The plain records of a mission: its brief (never changed), its status, and the files it came with."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from persistent import Persistent
from ZODB.blob import Blob

StatusWord: TypeAlias = Literal[
    "queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone"
]

#: From most to least trusted; what is made from several things has the least of them.
TRUST = ("user", "model", "tool", "external")


def least_trusted(*classes: str) -> str:
    """The minimum over a lineage.

    >>> least_trusted("user", "external", "model")
    'external'
    """
    return max(classes, key=TRUST.index)


class Brief(Persistent):
    """A request as a value: `value` is the brief of CONTRACT as plain data, `trust` the class of its text."""

    def __init__(self, value: dict[str, Any], accepted_at: str) -> None:
        self.value = value
        self.accepted_at = accepted_at
        self.trust = "user"


class Status(Persistent):
    """Where a mission stands; changed only by short transactions, never by the mission."""

    def __init__(self, word: StatusWord, at: str) -> None:
        self.word: StatusWord = word
        self.at = at
        self.reason: dict[str, Any] | None = None
        self.attempts = 0
        self.published = False
        self.tid: str | None = None
        #: What a failed mission passed through and spent; a thought that was doomed cannot tell.
        self.report: dict[str, Any] | None = None

    def become(self, word: StatusWord, at: str, reason: dict[str, Any] | None = None) -> None:
        """Move to another status; how often it began to run is counted."""
        if word == "running":
            self.attempts += 1
        self.word = word
        self.at = at
        self.reason = reason


class Attachment(Persistent):
    """A file that came with a brief, named by its content: short ones inline, long ones as a blob."""

    trust = "external"

    def __init__(self, sha256: str, size: int, data: bytes | None, blob: Blob | None) -> None:
        self.sha256 = sha256
        self.size = size
        self.data = data
        self.blob = blob

    def read(self) -> bytes:
        """The whole content."""
        if self.data is not None:
            return self.data
        assert self.blob is not None
        with self.blob.open("r") as file:
            content: bytes = file.read()
        return content
