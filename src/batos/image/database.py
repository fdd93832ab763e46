"""A database that takes nothing it could not load again: each record is checked before it is stored."""

from __future__ import annotations

from typing import Any

from ZODB.Connection import Connection
from ZODB.DB import DB

from batos.image.classes import check_record


class _LoadableConnection(Connection):
    """A connection that raises ForbiddenClass at the commit, or the savepoint, of what it could not load."""

    def _store_objects(self, writer: Any, transaction: Any) -> None:
        serialize = writer.serialize

        def checked(value: Any) -> bytes:
            record: bytes = serialize(value)
            check_record(record)
            return record

        writer.serialize = checked
        super()._store_objects(writer, transaction)


class LoadableDB(DB):
    """A DB whose connections check what they write."""

    klass = _LoadableConnection
