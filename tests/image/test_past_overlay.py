"""A copy of the image in memory: it stays as it was whatever is written below, and nothing of it gets down."""

from __future__ import annotations

from pathlib import Path

import pytest
from persistent.mapping import PersistentMapping
from ZODB.blob import Blob
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage
from ZODB.POSException import POSKeyError, ReadOnlyError

from batos.image.past import FrozenStorage, Overlay


def put(db: DB, **values: object) -> bytes:
    """Write into the root; the commit's id."""
    with db.transaction() as connection:
        connection.root().update(values)
    return db.lastTransaction()


def test_a_copy_is_frozen_below_and_written_above(tmp_path: Path) -> None:
    """Both go their ways; new objects and blobs too."""
    below = DB(FileStorage(str(tmp_path / "a.fs"), blob_dir=str(tmp_path / "blobs")))
    tid = put(below, shared=PersistentMapping(at=1), old=Blob(b"below"))
    put(below, later=1)
    copy = DB(Overlay(below.storage, tid))
    with copy.transaction() as connection:
        root = connection.root()
        assert "later" not in root
        with root["old"].open("r") as file:
            assert file.read() == b"below"
        root["shared"]["at"] = 2
        root["blob"] = Blob(b"above")
    with below.transaction() as connection:
        connection.root()["shared"]["at"] = 3
    with copy.transaction() as connection:
        assert connection.root()["shared"]["at"] == 2
        with connection.root()["blob"].open("r") as file:
            assert file.read() == b"above"
    copy.close()
    with below.transaction() as connection:
        assert (connection.root()["shared"]["at"], "blob" in connection.root()) == (3, False)
    below.close()


def test_commits_of_a_copy_follow_those_below(tmp_path: Path) -> None:
    """Even if the clock was set back: the ids below are of the future."""
    below = DB(FileStorage(str(tmp_path / "a.fs")))
    tid = put(below, here=1)
    copy = DB(Overlay(below.storage, tid))
    assert tid < put(copy, there=1) < put(copy, there=2)
    copy.close()
    below.close()


def test_a_frozen_storage_tells_only_what_was(tmp_path: Path) -> None:
    """Revisions, histories and their ends; it makes nothing."""
    below = DB(FileStorage(str(tmp_path / "a.fs")))
    first, second = put(below, here=1), put(below, here=2)
    frozen, oid = FrozenStorage(below.storage, first), b"\0" * 8
    assert (frozen.lastTransaction(), frozen.getTid(oid), len(frozen)) == (first, first, 1)
    assert frozen.loadBefore(oid, b"\x7f" + b"\xff" * 7)[1:] == (first, None)  # type: ignore[index]
    assert [each["tid"] for each in frozen.history(oid, 1)] == [first]
    assert (frozen.isReadOnly(), frozen.getSize() > 0, "as of" in frozen.getName()) == (True, True, True)
    assert frozen.sortKey() == below.storage.sortKey()
    assert frozen.loadSerial(oid, first)
    with pytest.raises(POSKeyError):
        frozen.loadSerial(oid, second)
    with pytest.raises(ReadOnlyError):
        frozen.new_oid()
    frozen.close()
    below.close()
