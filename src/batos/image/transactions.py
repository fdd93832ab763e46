"""One mission, one transaction: a connection and a manager of its own, and a commit that a cancellation cannot tear."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import transaction
from ZODB.DB import DB

from batos.errors import InternalError
from batos.image.commits import CommitThread

#: Checks an invariant of the state that is about to be committed; raises to veto. Deterministic, fast, no model.
Voter: TypeAlias = Callable[["MissionTransaction"], None]


class MissionTransaction:
    """A snapshot of the image for one thought; nothing of it is visible to anyone before `commit` returns."""

    def __init__(self, db: DB, thread: CommitThread, note: str) -> None:
        self._thread = thread
        self._manager = transaction.TransactionManager(explicit=True)
        self._connection = db.open(self._manager)
        self._manager.begin().note(note)
        self.root: Any = self._connection.root()
        self.committed = False
        self.doomed = False
        #: What the thought made: set before the commit, read by the voters.
        self.thought: Any = None

    @property
    def read_at(self) -> bytes:
        """The commit as of which this mission sees the image."""
        before: bytes = self._connection._storage._start
        return (int.from_bytes(before, "big") - 1).to_bytes(8, "big")

    def watch(self, voters: tuple[Voter, ...]) -> None:
        """Ask these voters before the commit; a veto (any exception) aborts it."""
        current = self._manager.get()
        for voter in voters:
            current.addBeforeCommitHook(voter, (self,))

    def new(self, value: Any) -> Any:
        """Give a new object its identity now, in this transaction."""
        self._connection.add(value)
        return value

    def doom(self) -> None:
        """From here on this thought can only be aborted."""
        if not self.doomed and not self.committed:
            self.doomed = True
            self._manager.doom()

    async def commit(self, thought: Any) -> bytes:
        """Commit in the commit thread; returns the transaction's id, which is the serial of the written thought."""
        if self.doomed:
            raise InternalError("a doomed thought was to be committed")
        self.thought = thought
        await self._thread.run(self._manager.commit)
        self.committed = True
        serial: bytes = thought._p_serial
        return serial

    def close(self) -> None:
        """Abort what is not committed and give the connection back."""
        # `_txn` is None exactly after a commit or abort that went through; a failed or doomed one stays open.
        if self._manager._txn is not None:
            self._manager.abort()
        self._connection.close()


@contextlib.contextmanager
def snapshot(db: DB) -> Iterator[Any]:
    """The root as of now, for reading; what is changed in it is thrown away."""
    manager = transaction.TransactionManager(explicit=True)
    connection = db.open(manager)
    try:
        manager.begin()
        yield connection.root()
    finally:
        if manager._txn is not None:
            manager.abort()
        connection.close()
