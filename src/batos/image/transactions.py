"""A transaction for each mission: its own connection and manager, and a commit that cancellation cannot interrupt."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any, TypeAlias, cast

import transaction
from transaction.interfaces import NoTransaction
from ZODB.DB import DB
from ZODB.mvccadapter import HistoricalStorageAdapter
from ZODB.utils import before2at, z64

from batos.concurrency.threads import CommitThread
from batos.image.classes import as_damage
from batos.image.guards import changed_objects
from batos.image.roots import Root, root_of
from batos.objects.prototype import UvmObject
from batos.protocol.errors import InternalError

#: Checks an invariant of the state that is about to be committed; raises to veto. Deterministic, fast, no model.
Voter: TypeAlias = Callable[["MissionTransaction"], None]


def refuse_unchecked(transaction: MissionTransaction) -> None:
    """Refuse every mission's commit: the voter of an image that was opened without any.

    Raises: InternalError: always.
    """
    raise InternalError("the image was opened without its voters")


class MissionTransaction:
    """A snapshot of the image for one thought; nothing of it is visible to anyone before `commit` returns."""

    def __init__(self, db: DB, thread: CommitThread, mission: str) -> None:
        self.mission = mission
        self._thread = thread
        self._manager = transaction.TransactionManager(explicit=True)
        self._manager.begin().note(mission)
        self._connection = cast("Any", db.open(self._manager))
        self._connection.thought = True
        self.root: Root = root_of(self._connection)
        #: The commit as of which this mission sees the image.
        self.read_at = _seen_at(self._connection)
        self.committed = False
        self.doomed = False
        #: The mission's result: set before the commit, read by the voters.
        self.thought: Any = None
        #: The commit's id, once there is one.
        self.serial = b""
        #: The time that it took, its wait for the commits before it among it.
        self.seconds = 0.0

    def watch(self, voters: tuple[Voter, ...]) -> None:
        """Ask these voters before the commit; a veto (any exception) aborts it."""
        current = self._manager.get()
        for voter in voters:
            current.addBeforeCommitHook(voter, (self,))

    def new(self, value: object) -> Any:
        """Give a new object its identity now, in this transaction."""
        self._connection.add(value)
        return value

    def changed_objects(self) -> tuple[Any, ...]:
        """Return the objects that this mission has changed so far, new ones included."""
        return changed_objects(self._connection)

    def shared_changes(self, thought: object) -> tuple[bytes, ...]:
        """Return the ids of the committed objects that this mission has changed, but for its own thought."""
        return tuple(each._p_oid for each in self.changed_objects() if each is not thought and each._p_serial != z64)

    def committed_slots(self, changed: UvmObject) -> Mapping[str, object] | None:
        """Return the committed slots of an object, its parents among them; None: it is new."""
        if changed._p_serial == z64:
            return None
        found: Mapping[str, object] = self._connection.oldstate(changed, changed._p_serial)
        return found

    def guard(self, read: object) -> None:
        """Let the commit fail if an object that was only read is changed by another commit before it."""
        self._connection.readCurrent(read)

    def doom(self) -> None:
        """Forbid the commit: from now on this transaction can only be aborted."""
        if not self.doomed and not self.committed:
            self.doomed = True
            self._manager.doom()

    async def commit(self, thought: Any) -> bytes:
        """Commit in the commit thread; returns the transaction's id, which is the serial of the written thought.

        After a CancelledError `committed` says whether it came too late.
        """
        if self.doomed:
            raise InternalError("a doomed thought was to be committed")
        self.thought = thought
        # The last hook to run: ZODB commits a transaction that is doomed while its hooks run.
        self._manager.get().addBeforeCommitHook(self._check_not_doomed)
        begun = perf_counter()
        try:
            await self._thread.run(self._manager.commit)
        finally:
            self.seconds = round(perf_counter() - begun, 6)
            self.committed = not self._has_transaction()
            if self.committed:
                self.serial = thought._p_serial
        return self.serial

    def _check_not_doomed(self) -> None:
        if self.doomed:
            raise InternalError("the thought was doomed while it was being committed")

    @property
    def reason(self) -> str:
        """Return the reason why nothing of it is committed."""
        return "doomed" if self.doomed else "left"

    def _has_transaction(self) -> bool:
        """Test if there is a transaction: a successful commit ends it, a failed one does not."""
        try:
            self._manager.get()
        except NoTransaction:
            return False
        return True

    def close(self) -> None:
        """Abort what is not committed and give the connection back."""
        try:
            if self._has_transaction():
                self._manager.abort()
                # A container that was changed in place by who forgot to mark its object is no change that the abort
                # knows of: the connection goes back to the pool, and the next mission would see it.
                self._connection.cacheMinimize()
        finally:
            self._connection.thought = False  # the next one that has it out of the pool may be the writer
            self._connection.close()


def _seen_at(connection: Any) -> bytes:
    """Return the id of the newest commit that a connection sees.

    No public function returns it. The adapter that ZODB puts around a storage keeps the commit before which it reads as
    `_start`; a storage with snapshots of its own (RelStorage) returns its last transaction. `db.lastTransaction()` may
    be older or newer than either.
    """
    storage = connection._storage
    start = getattr(storage, "_start", None)
    seen: bytes = storage.lastTransaction() if start is None else before2at(start)
    return seen


@contextlib.contextmanager
def snapshot(db: DB) -> Iterator[Any]:
    """Open the current root for reading; changes are thrown away.

    Raises: ImageDamaged: an object cannot be read. Busy: each reader has a session of a server, and too many read.
    """
    limit, threads = getattr(db, "readers", None), getattr(db, "reading_threads", None)
    with contextlib.ExitStack() as stack:
        for each in (limit, threads):
            if each is not None:
                stack.enter_context(each.reading())
        yield stack.enter_context(_open_for_reading(db))


@contextlib.contextmanager
def _open_for_reading(db: DB) -> Iterator[Any]:
    manager = transaction.TransactionManager(explicit=True)
    manager.begin()
    connection = db.open(manager)
    try:
        yield connection.root()
    except Exception as error:  # a damaged record may raise anything
        damaged = as_damage(error)
        if damaged is None:
            raise
        raise damaged from error
    finally:
        try:
            manager.abort()
            _leave_past(connection)
        finally:
            connection.close()


def _leave_past(connection: Any) -> None:
    """End the server's transaction of a connection to the past: ZODB keeps it open, and with it locks of tables."""
    storage = connection._storage
    if isinstance(storage, HistoricalStorageAdapter) and hasattr(storage._storage, "afterCompletion"):
        storage._storage.afterCompletion()
