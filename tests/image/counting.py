"""A file storage that counts its own conflicts."""

from __future__ import annotations

from typing import Any

from ZODB.POSException import ConflictError

from batos.image.filestorage import SoundFileStorage


class CountingStorage(SoundFileStorage):
    """Counts what was stored, what had to be resolved because somebody else had changed it, and what could not be."""

    def __init__(self, path: str, **also: Any) -> None:
        self.stored = self.resolved = self.conflicts = 0
        super().__init__(path, **also)

    def store(self, oid: bytes, serial: bytes, data: bytes, version: str, transaction: Any) -> Any:
        """Store, counting a conflict."""
        self.stored += 1
        try:
            return super().store(oid, serial, data, version, transaction)
        except ConflictError:
            self.conflicts += 1
            raise

    def tryToResolveConflict(self, *given: Any, **also: Any) -> bytes:  # noqa: N802 - ZODB's name
        """Called exactly when an object was changed since the transaction that stores it began."""
        self.resolved += 1
        return super().tryToResolveConflict(*given, **also)
