"""The plain records of a mission: its brief (never changed), its status, and the files it came with."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

from persistent import Persistent
from ZODB.blob import Blob
from ZODB.FileStorage.format import CorruptedError
from ZODB.POSException import POSError

from batos.errors import ImageDamaged
from batos.image.ids import oid_text

StatusWord: TypeAlias = Literal[
    "queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone"
]

#: From most to least trusted; what is made from several things has the least of them.
TRUST = ("user", "model", "tool", "external")

#: The slot in which an object keeps what the codex declared for it: slot name to digest of the declaration.
DIGESTS = "codex_digests"

#: The slot in which an object keeps which of its slots are less trusted than what a model says: {slot: class}.
SLOT_TRUST = "slot_trust"


def least_trusted(*classes: str) -> str:
    """Return the least trusted of these trust classes.

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
    """Where a mission stands; changed only by short transactions, never by the mission.

    `deaths` counts the attempts that count against it: processes that died with it where the one before had died.
    """

    #: Written only where they say something else.
    deaths = 0
    #: The journal's length when a process last died with this mission: entries, closed entries, last path.
    mark: tuple[int, int, str] | None = None
    #: True if the mission runs, or last ran, with no other mission beside it.
    alone = False

    def __init__(self, word: StatusWord, at: str) -> None:
        self.word: StatusWord = word
        self.at = at
        self.reason: dict[str, Any] | None = None
        self.attempts = 0
        self.published = False
        self.tid: str | None = None
        #: States and cost of a failed mission, which a doomed thought cannot store.
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
        """Return the whole content.

        Raises: ImageDamaged: the content cannot be read or is not what was stored; the error names the file.
        """
        try:
            content = self._content()
        except (OSError, POSError, CorruptedError) as error:
            # Its record may be what cannot be read, and with it its name.
            name = self.__dict__.get("sha256") or oid_text(self._p_oid or b"")
            raise lost(name, f"cannot be read ({error!r})") from error
        return self.checked(content)

    def checked(self, content: bytes) -> bytes:
        """Return the content, if it is what was attached; else raise ImageDamaged."""
        found = hashlib.sha256(content).hexdigest()
        if (len(content), found) != (self.size, self.sha256):
            raise lost(self.sha256, f"is not what was attached: its sha256 is {found}")
        return content

    def _content(self) -> bytes:
        if self.data is not None:
            return self.data
        assert self.blob is not None
        with self.blob.open("r") as file:
            content: bytes = file.read()
        return content


def lost(name: str, why: str) -> ImageDamaged:
    """Make the error for an attached file that is not there as it was."""
    return ImageDamaged(
        f"the attached file {name} {why}",
        remedy="Attach the file again: that writes it anew. Or bring back the blobs from the last backup.",
    )
