"""A database that takes nothing it could not load again, with a limit on the readers of a server."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.POSException import POSKeyError
from ZODB.serialize import referencesf
from ZODB.utils import z64

from batos.image.classes import check_record
from batos.image.guards import changed_objects, check_written, uphold
from batos.image.ids import oid_text
from batos.protocol.errors import Busy, Refused

#: Seconds that a reader waits for another one to end.
PATIENCE: Final = 10.0
#: Seconds that closing a database waits for the threads that read it.
_CLOSING: Final = 60.0


class ReadingThreads:
    """A count of the threads that read a database, so that it is closed under none of them.

    A task that is cancelled while a thread reads for it ends at once, and the thread later.
    """

    def __init__(self) -> None:
        self._count, self._ended = 0, threading.Condition()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count this thread meanwhile, unless it is that of the event loop, which closes nothing under itself."""
        if _is_loop():
            yield
            return
        with self._ended:
            self._count += 1
        try:
            yield
        finally:
            with self._ended:
                self._count -= 1
                self._ended.notify_all()

    def wait(self, patience: float = _CLOSING) -> None:
        """Wait until no thread reads any more, for so many seconds at most."""
        with self._ended:
            self._ended.wait_for(lambda: not self._count, patience)


class ReaderLimit:
    """A limit of the threads that read at once. A thread that reads already begins further reads without waiting.

    The thread of the event loop never waits: what it reads is short, and all else would wait with it. The sessions that
    it needs are counted beside these.
    """

    def __init__(self, most: int, patience: float = PATIENCE) -> None:
        self._most, self._patience = most, patience
        self._free = threading.BoundedSemaphore(most)
        self._of_thread = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wait until this thread may read. Raises: Busy: too many others read all the time."""
        depth = getattr(self._of_thread, "depth", 0)
        if _is_loop():
            yield
            return
        if not depth and not self._free.acquire(timeout=self._patience):
            raise Busy(
                f"{self._most} others have read the image at this node for {self._patience:g} s, as many as may",
                field="image",
                remedy="Try again. Each reader holds a session of the server: start another node for more at once.",
            )
        self._of_thread.depth = depth + 1
        try:
            yield
        finally:
            self._of_thread.depth -= 1
            if not depth:
                self._free.release()


def _is_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


#: A possible object id in a record: eight bytes after pickle's code for them. Every reference has one, and a text may
#: contain one. This search takes a fifth of the time of reading a record's references.
_LIKELY: Final = re.compile(rb"C\x08(?=(.{8}))", re.DOTALL)

#: The most records of which a connection remembers what they refer to.
_REMEMBERED: Final = 256


class _CheckedConnection(Connection):
    """A connection that checks, at the commit, each record that is about to be stored.

    The commit raises ForbiddenClass for a record that could not be loaded, and Refused for one that breaks an
    invariant or refers to an object that is not there, and for a commit that would undo the organisation. Whoever
    commits does so by such a connection, so that the checks hold for every writer.
    """

    #: True if the commit is a mission's: its transaction sets this.
    thought = False

    #: True if the commit is of the lease itself.
    leasing = False

    #: True if the commit is of what the publisher alone writes.
    publishing = False

    def __init__(self, *arguments: object, **keywords: object) -> None:
        super().__init__(*arguments, **keywords)
        #: Of the newest records that were committed here: the id of the commit, and what may be ids in the record.
        self._committed: dict[bytes, tuple[bytes, frozenset[bytes]]] = {}
        #: The same of the records of the commit under way.
        self._written: dict[bytes, frozenset[bytes]] = {}
        #: The id of the newest commit here that wrote the root, and what the root held then, by name.
        self.names: tuple[bytes, Mapping[str, object]] = (z64, {})

    def tpc_begin(self, transaction: object) -> None:
        """Begin a commit."""
        self._written.clear()
        super().tpc_begin(transaction)

    def commit(self, transaction: object) -> None:
        """Store what was changed, if the organisation is the same after it, and this node has the lease."""
        fence: _Fence | None = getattr(self.db(), "fence", None)
        if fence is not None:
            fence.guard(self)
        uphold(self, changed_objects(self), thought=self.thought)
        super().commit(transaction)

    def tpc_finish(self, transaction: object) -> None:
        """Finish a commit, and remember what its records may refer to: who writes them again need not read them."""
        super().tpc_finish(transaction)
        if z64 in self._written:
            root = self.root()
            self.names = root._p_serial, dict(root)
        for oid, likely in self._written.items():
            value = self._cache.get(oid)
            self._committed.pop(oid, None)
            if value is not None:
                self._committed[oid] = value._p_serial, likely
        for oid in tuple(self._committed)[:-_REMEMBERED]:
            del self._committed[oid]

    def _store_objects(self, writer: Any, transaction: Any) -> None:
        serialize, found = writer.serialize, {each._p_oid for each in writer._stack}

        def check_and_serialize(value: Any) -> bytes:
            begin = len(writer._stack)
            record: bytes = serialize(value)
            found.update(each._p_oid for each in writer._stack[begin:])
            check_record(record)
            check_written(value, thought=self.thought)
            self._check_references(value, record, found)
            return record

        writer.serialize = check_and_serialize
        super()._store_objects(writer, transaction)

    def _check_references(self, value: Any, record: bytes, found: Container[bytes]) -> None:
        """Raise Refused for a reference that the record did not have before to an object that the database lacks.

        The database keeps what is new in three places until it is stored; `found` has the objects that serializing came
        upon. An object that is loaded may be gone all the same: a pack removes what nothing refers to and tells no
        connection.
        """
        likely = self._written[value._p_oid] = frozenset(_LIKELY.findall(record))
        if likely:
            likely -= self._former(value._p_oid, getattr(value, "_p_serial", z64))
        # The places are as large as the commit and a record has few references: these are looked up one by one.
        likely = frozenset(oid for oid in likely if not (oid in found or oid in self._creating or oid in self._added))
        for oid in likely.intersection(referencesf(record)) if likely else ():
            try:
                self._storage.load(oid)
            except POSKeyError:
                what = f"{oid_text(value._p_oid)} would refer to {oid_text(oid)}, which no longer exists"
                raise Refused(what, field="references", remedy="Nothing was written. Ask again.") from None

    def _former(self, oid: bytes, serial: bytes) -> frozenset[bytes]:
        """Return what may be ids in an object's record of that commit; a new object has none."""
        if serial == z64:
            return frozenset()
        commit, likely = self._committed.get(oid, (z64, frozenset[bytes]()))
        return likely if commit == serial else frozenset(_LIKELY.findall(self._storage.load(oid)[0]))


class _Fence(Protocol):
    """A guard that is asked before each commit."""

    def guard(self, connection: object) -> None:
        """Raise an error if the connection may not commit, and let its commit fail if that changes meanwhile."""


class LoadableDB(DB):
    """A DB whose connections check what they write."""

    klass = _CheckedConnection

    #: Asked before each commit, where several nodes can reach the database.
    fence: _Fence | None = None

    #: Limits who reads at once, where each connection is a session of a server.
    readers: ReaderLimit | None = None

    #: Where it is, for people, if its storage's own name may have a password in it.
    place: str = ""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        #: Held by who asks the storage itself, which no connection has.
        self.asking = threading.RLock()
        #: The threads that read it now.
        self.reading_threads = ReadingThreads()
        super().__init__(*arguments, **keywords)

    def close(self) -> None:
        """Close it once no thread reads it."""
        self.reading_threads.wait()
        super().close()
