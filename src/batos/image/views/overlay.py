"""A copy of the image in memory that costs nothing until it is written to: a past commit below, changes above it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ZODB.Connection import TransactionMetaData
from ZODB.DemoStorage import DemoStorage
from ZODB.POSException import POSKeyError, ReadOnlyError
from ZODB.utils import newTid, p64, u64


class FrozenStorage:
    """A storage as it was right after a commit, whatever is written to it meanwhile; it cannot be written to."""

    def __init__(self, storage: Any, tid: bytes) -> None:
        #: A storage with snapshots of its own (RelStorage) gives each user an instance, which ends with this.
        instance = getattr(storage, "new_instance", None)
        self._own = None if instance is None else instance()
        self._storage = storage if self._own is None else self._own
        #: Held by who reads the instance: it has one session, and the connections of a copy are used by many threads.
        self._reading = nullcontext() if self._own is None else threading.RLock()
        self._before = p64(u64(tid) + 1)
        for name in ("loadBlob", "openCommittedBlobFile", "temporaryDirectory"):
            if hasattr(self._storage, name):  # it keeps blobs
                setattr(self, name, self._alone(getattr(self._storage, name)))

    def _alone(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of the storage that waits until no other thread reads it."""

        def read_alone(*arguments: object, **keywords: object) -> Any:
            with self._reading:
                return read(*arguments, **keywords)

        return read_alone

    def close(self) -> None:
        """Give back what was opened for this; the storage itself stays open."""
        if self._own is not None:
            with self._reading:
                self._own.release()

    def getName(self) -> str:  # noqa: N802  # the storage's name for it, here and below
        """Return the name of the storage, and the commit."""
        return f"{self._storage.getName()} as of {self.lastTransaction().hex()}"

    def getSize(self) -> int:  # noqa: N802
        """Return the size of the storage as it is now."""
        return int(self._storage.getSize())

    def isReadOnly(self) -> bool:  # noqa: N802
        """Return True."""
        return True

    def lastTransaction(self) -> bytes:  # noqa: N802
        """Return the commit."""
        return p64(u64(self._before) - 1)

    def __len__(self) -> int:
        return len(self._storage)

    def history(self, oid: bytes, size: int = 1) -> list[Any]:
        """Return the newest revisions of an object that were there."""
        most = size
        while True:
            with self._reading:
                found = self._storage.history(oid, size=most)
            then = [each for each in found if each["tid"] < self._before]
            if len(found) < most or len(then) >= size:
                return then[:size]
            most *= 2

    def getTid(self, oid: bytes) -> bytes:  # noqa: N802
        """Return the commit that wrote an object last."""
        found = self.loadBefore(oid, self._before)
        if found is None:
            raise POSKeyError(oid)
        return found[1]

    def loadBefore(self, oid: bytes, tid: bytes) -> tuple[bytes, bytes, bytes | None] | None:  # noqa: N802
        """Return an object's record, the commit that wrote it, and the one that wrote the next, if that was before."""
        with self._reading:
            found = self._storage.loadBefore(oid, min(tid, self._before))
        if found is None:
            return None
        data, start, end = found
        return data, start, None if end is not None and end >= self._before else end

    def loadSerial(self, oid: bytes, serial: bytes) -> bytes:  # noqa: N802
        """Return a revision of an object."""
        if serial >= self._before:
            raise POSKeyError(oid)
        with self._reading:
            data: bytes = self._storage.loadSerial(oid, serial)
        return data

    def new_oid(self) -> bytes:
        """Refuse: nothing is made here."""
        raise ReadOnlyError

    def sortKey(self) -> str:  # noqa: N802
        """Return the storage's."""
        return str(self._storage.sortKey())


class Overlay(DemoStorage):
    """Changes in memory above a storage as it was; closing it forgets them."""

    def __init__(self, storage: Any, tid: bytes) -> None:
        super().__init__(base=FrozenStorage(storage, tid), close_base_on_close=True, close_changes_on_close=True)
        # A first commit of nothing: those that follow are later than all below, even if the clock was set back.
        first = TransactionMetaData()
        self.changes.tpc_begin(first, tid=newTid(tid))
        self.changes.tpc_vote(first)
        self.changes.tpc_finish(first)
