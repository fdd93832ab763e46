"""A pack that was cut off between any two of its steps leaves a file that opens, with all that was committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from zc.lockfile import LockError
from ZODB.blob import Blob
from ZODB.DB import DB

from batos.image.filestorage import SoundFileStorage
from batos.image.readable import is_there, open_read_only
from batos.protocol.errors import ImageDamaged


@contextmanager
def opened(folder: Path) -> Iterator[tuple[DB, Any]]:
    """A database with blobs, and its root."""
    db = DB(SoundFileStorage(str(folder / "a.fs"), blob_dir=str(folder / "blobs")))
    try:
        with db.transaction() as connection:
            yield db, connection.root()
    finally:
        db.close()


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, bytes, bytes]:
    """A folder with a database of two states, its file, and what a pack makes of that; a blob is of the first alone."""
    with opened(tmp_path) as (_, root):
        root["blob"] = Blob(b"what is to go")
        root["word"] = "first"
    with opened(tmp_path) as (_, root):
        del root["blob"]
        root["word"] = "second"
    before = (tmp_path / "a.fs").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "a.fs").write_bytes(before)
    storage = SoundFileStorage(str(copy / "a.fs"))
    db = DB(storage)
    db.pack()
    db.close()
    (tmp_path / "a.fs.index").unlink()  # a pack clears it first
    return tmp_path, before, (copy / "a.fs").read_bytes()


def word(folder: Path) -> str:
    """What the root has once the file is opened."""
    with opened(folder) as (_, root):
        return str(root["word"])


def blobs(folder: Path) -> list[Path]:
    """The files of blobs."""
    return sorted((folder / "blobs").rglob("*.blob"))


def test_the_half_of_a_packed_file_is_dropped(packed: tuple[Path, bytes, bytes]) -> None:
    """The file itself was not touched yet."""
    folder, before, after = packed
    (folder / "a.fs.pack").write_bytes(after[: len(after) // 2])
    assert word(folder) == "second"
    assert not (folder / "a.fs.pack").exists()
    assert (folder / "a.fs").read_bytes()[: len(before)] == before


def test_a_file_that_was_put_aside_is_put_back(packed: tuple[Path, bytes, bytes]) -> None:
    """There is none in its place for a moment: a new one would be an empty mind."""
    folder, before, after = packed
    (folder / "a.fs").rename(folder / "a.fs.old")
    (folder / "a.fs.pack").write_bytes(after)
    uri = f"file://{folder / 'a.fs'}"
    assert is_there(uri)
    with pytest.raises(ImageDamaged, match=r"a pack of .* was cut off") as told, open_read_only(uri, ""):
        pass
    assert "puts it back" in told.value.remedy
    assert word(folder) == "second"
    assert (folder / "a.fs").read_bytes()[: len(before)] == before
    assert not (folder / "a.fs.pack").exists()
    assert not (folder / "a.fs.old").exists()
    assert len(blobs(folder)) == 1


def test_a_file_that_a_person_put_aside_stays_there(packed: tuple[Path, bytes, bytes]) -> None:
    """Without the packed one beside it nothing tells that a pack did it: a new file is begun."""
    folder, before, _ = packed
    (folder / "a.fs").rename(folder / "a.fs.old")
    assert not is_there(f"file://{folder / 'a.fs'}")
    with opened(folder) as (_db, root):
        assert "word" not in root
    assert (folder / "a.fs.old").read_bytes() == before


def test_blobs_that_a_finished_pack_had_noted_are_removed(packed: tuple[Path, bytes, bytes]) -> None:
    """With the former file: nothing else would ever find them."""
    folder, _, after = packed
    (folder / "a.fs").rename(folder / "a.fs.old")
    (folder / "a.fs").write_bytes(after)
    (blob,) = blobs(folder)
    oid = bytes(int(part, 16) for part in blob.parent.relative_to(folder / "blobs").parts)
    (folder / "blobs" / ".removed").write_text(f"{oid.hex()}\n")
    assert word(folder) == "second"
    assert blobs(folder) == []
    assert not (folder / "a.fs.old").exists()


def test_a_pack_of_another_process_is_left_alone(packed: tuple[Path, bytes, bytes]) -> None:
    """Whoever packs just now has no file for a moment, and the lock."""
    folder, _, after = packed
    with opened(folder):
        (folder / "a.fs.pack").write_bytes(after)
        with pytest.raises(LockError):
            SoundFileStorage(str(folder / "a.fs"))
        assert (folder / "a.fs.pack").exists()
