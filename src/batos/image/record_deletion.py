"""Deletion of a record that nothing refers to, in a commit of its own; earlier moments still have it, until a pack."""

from __future__ import annotations

from typing import Any

from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.utils import load_current


def delete_record(db: DB, oid: bytes) -> None:
    """Delete the current record of an object. The storage has to be this process's alone."""
    storage: Any = db.storage
    _, serial = load_current(storage, oid)
    work = TransactionMetaData(description="an orphan is deleted")
    storage.tpc_begin(work)
    try:
        storage.deleteObject(oid, serial, work)
        storage.tpc_vote(work)
        storage.tpc_finish(work)
    except BaseException:
        storage.tpc_abort(work)
        raise
