"""A database in a file and sessions on it: each its own connection and explicit transaction, as a mission's are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from transaction import TransactionManager
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DB]:
    """An empty database in a file."""
    db = DB(FileStorage(str(tmp_path / "image.fs")))
    yield db
    db.close()


@pytest.fixture
def session(database: DB) -> Callable[[], AbstractContextManager[Connection]]:
    """Open a connection, cold, with a transaction begun; what the test does not commit is aborted."""

    @contextmanager
    def opened() -> Iterator[Connection]:
        manager = TransactionManager(explicit=True)
        connection = database.open(manager)
        manager.begin()
        connection.cacheMinimize()  # the pool may have given one that was used before
        try:
            yield connection
        finally:
            if manager._txn is not None:
                manager.abort()
            connection.close()

    return opened
