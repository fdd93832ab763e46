"""The image as it was: its root as of a past commit, for reading, or as a copy in memory that may be written to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from persistent import Persistent
from persistent.timestamp import TimeStamp
from transaction import TransactionManager
from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.DemoStorage import DemoStorage
from ZODB.POSException import POSKeyError, ReadConflictError, ReadOnlyError
from ZODB.utils import newTid, p64, u64, z64

from batos.image import evolving, ownership, roots
from batos.image.database import LoadableDB
from batos.image.ids import iso
from batos.image.readable import ReadableImage, is_complete
from batos.image.records import Status
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BatosError, ImageDamaged, PackedAway, Refused

#: The status that a pack gives to the commits that it went through.
_PACKED: Final = "p"
#: The key in the root's `genesis` that a mind has from its making on.
_CODEX: Final = "codex_texts"
#: Most revisions of an object that are looked at.
_REVISIONS: Final = 1_000


def tid_of(moment: datetime) -> bytes:
    """Return the id that a commit at this moment would have."""
    utc = moment.astimezone(UTC)
    seconds = utc.second + utc.microsecond / 1_000_000
    return TimeStamp(utc.year, utc.month, utc.day, utc.hour, utc.minute, seconds).raw()


def moment_of(tid: bytes) -> datetime:
    """Return the moment of a commit."""
    return datetime.fromtimestamp(TimeStamp(tid).timeTime(), UTC)


def newest_commit(db: DB) -> bytes:
    """Return the id of the newest commit."""
    with _present(db):
        tid: bytes = db.lastTransaction() or z64
    return tid


@contextmanager
def _present(db: DB) -> Iterator[Any]:
    """Yield the storage that a database has beside those of its connections, as it is now.

    RelStorage shows what it saw first, unless it is polled just before, and has one session for all that ask it.
    """
    storage: Any = db.storage
    if not hasattr(storage, "poll_invalidations"):
        yield storage
        return
    with cast("LoadableDB", db).asking:
        try:
            storage.poll_invalidations()
            yield storage
        finally:
            # The poll began a transaction, which would hold the server's tables until the next one.
            storage.afterCompletion()


@dataclass(frozen=True, slots=True)
class KeptSpan:
    """The oldest commit that can be asked about; `packed`: there were older ones."""

    oldest: bytes
    packed: bool


def kept_span(db: DB) -> KeptSpan:
    """Tell how far back a database can be asked; this reads the head of every commit since then, and of packed ones."""
    oldest, packed, commits = z64, False, db.storage.iterator()
    try:
        for commit in commits:
            status = commit.status
            if (status.decode() if isinstance(status, bytes) else status) == _PACKED:
                oldest, packed = commit.tid, True
            else:
                return KeptSpan(oldest if packed else commit.tid, packed)
        return KeptSpan(oldest, packed)
    finally:
        # That of a file has it open until then.
        getattr(commits, "close", lambda: None)()


class _PastDB:
    """A database as of a commit: each connection that it opens sees that state, and takes no change."""

    def __init__(self, db: DB, tid: bytes) -> None:
        """Show a database as it was right after commit `tid`."""
        self._db = db
        self.readers, self.reading_threads = getattr(db, "readers", None), getattr(db, "reading_threads", None)
        self.before = p64(u64(tid) + 1)

    def open(self, manager: TransactionManager) -> Any:
        """Open a connection that sees the past."""
        newest = newest_commit(self._db)
        # A moment behind the newest commit sees that one; the database would call it the future.
        return self._db.open(manager, before=min(self.before, p64(u64(newest) + 1)))

    def lacks(self) -> KeptSpan | None:
        """Return how far back the database can be asked, if that is not as far as this."""
        span = kept_span(self._db)
        return span if self.before <= span.oldest else None

    def getSize(self) -> int:  # noqa: N802  # as a DB names it
        """Return the bytes of the database as it is now."""
        size: int = self._db.getSize()
        return size


class PastImage(ReadableImage):
    """An image as it was right after a commit, with its journal of that moment."""

    def __init__(self, image: ReadableImage, tid: bytes) -> None:
        self.tid, self._today = tid, image
        super().__init__(image.uri, cast("DB", _PastDB(image.db, tid)), cast("DB", _PastDB(image.journal_db, tid)))

    @contextmanager
    def snapshot(self) -> Iterator[Root]:
        """Yield the root as of that commit. Raises: PackedAway: it is older than what is kept."""
        try:
            with snapshot(self.db) as root:
                if not is_complete(root):
                    roots.prepare(root)  # before the mind was made; what is made here is thrown away
                    evolving.show_in_present_form(root)
                yield root
        except (ImageDamaged, ReadConflictError, POSKeyError) as error:
            lost = error.__cause__ if isinstance(error, ImageDamaged) else error
            if isinstance(lost, POSKeyError | ReadConflictError):
                reason = self._find_reason()
                if reason is not None:
                    raise reason from error
            raise

    def check_kept(self) -> None:
        """Check that all of it is kept: a part that did not change since may be read where others are packed away.

        Raises: PackedAway: it is older than what is kept.
        """
        reason = self._find_reason()
        if reason is not None:
            raise reason

    def check_made(self) -> None:
        """Check that the mind had been made by then. Raises: Refused: it had not, which names the first moment."""
        with self.snapshot() as root:
            if _CODEX in root[roots.GENESIS]:
                return
        with self._today.snapshot() as root:
            known = root[roots.GENESIS].get(_CODEX)
            made = None if known is None else first_writing(root, known).tid
        remedy = "Run `batos genesis`." if made is None else f"Ask with --as-of {_moment_text(made)} or later."
        raise Refused("the mind had not been made at that moment", field="as_of", remedy=remedy)

    def _find_reason(self) -> BatosError | None:
        span = cast("_PastDB", self.db).lacks()
        return None if span is None else before_span(span)


def before_span(span: KeptSpan) -> PackedAway:
    """Make the error for a moment that is older than what is kept."""
    at = _moment_text(span.oldest)
    what = "what came before has been packed away" if span.packed else "there was nothing before"
    return PackedAway(
        f"the oldest moment that can be asked about is {at}: {what}",
        field="as_of",
        remedy=f"Ask with --as-of {at} or later, or ask a copy that was restored from a backup.",
    )


def _moment_text(tid: bytes) -> str:
    """Tell the first moment at which a commit is there: to the millisecond, so that it is not before the commit."""
    return iso(moment_of(tid) + timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True)
class Writing:
    """The commit that wrote something; `note` is the mission that committed it, "" if it was another writer."""

    tid: bytes
    note: str = ""


def first_writing(root: Root, obj: Persistent) -> Writing:
    """Return the commit that made an object, as far back as its history is kept."""
    return _writing(_revisions(root, obj)[-1])


def newest_writing(root: Root, obj: Persistent) -> Writing:
    """Return the commit that wrote an object last."""
    return _writing(_revisions(root, obj, 1)[0])


def slot_writing(root: Root, obj: UvmObject, slot: str, user: str) -> Writing:
    """Return the commit since which a slot of an object has the value that a user sees, as far back as is kept.

    With no user ("") that is the value as it stands.
    """
    connection: Any = roots.connection_of(root)
    revisions = _revisions(root, obj)
    value, found = ownership.slot_for(own_slots(obj), slot, user), revisions[0]
    for revision in revisions[1:]:
        if ownership.slot_for(connection.oldstate(obj, revision["tid"]), slot, user) != value:
            break
        found = revision
    return _writing(found)


def _revisions(root: Root, obj: Persistent, most: int = _REVISIONS) -> list[Mapping[str, Any]]:
    """Return the newest revisions of an object up to the one that a root sees, the newest first."""
    obj._p_activate()
    with _present(roots.connection_of(root).db()) as storage:
        found: list[Mapping[str, Any]] = storage.history(obj._p_oid, size=most)
    return [each for each in found if each["tid"] <= obj._p_serial] or found


def _writing(revision: Mapping[str, Any]) -> Writing:
    note = revision.get("description", b"")
    return Writing(revision["tid"], note.decode("utf-8", "replace") if isinstance(note, bytes) else str(note))


def published_at(root: Root, status: Status) -> bytes | None:
    """Return the id of the commit by which a mission was published; None if it is not, or that is packed away."""
    if not status.published:
        return None
    connection: Any = roots.connection_of(root)
    found = None
    for revision in _revisions(root, status):
        state = connection.oldstate(status, revision["tid"])
        if not state.get("published"):
            break
        found = revision["tid"], state["word"]
    return found[0] if found is not None and found[1] == "done" else None


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
