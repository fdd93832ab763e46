"""Copies of a database: what a copy that was cut off leaves behind spoils no later one, and a torn end is no fault."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.care import backups
from batos.protocol.errors import BatosError


def write(file: Path, value: str) -> None:
    """Commit a value."""
    with closing(DB(FileStorage(str(file)))) as db, db.transaction() as connection:
        connection.root()["value"] = value


def read(file: Path) -> str:
    """Return the value of a database."""
    with closing(DB(FileStorage(str(file), read_only=True))) as db, db.transaction() as connection:
        return str(connection.root()["value"])


def made(place: Path) -> tuple[Path, Path, list[str]]:
    """Return a database, the folder of its copies, and the names of a full copy and an addition."""
    file, folder = place / "data.fs", place / "my copies"
    folder.mkdir()
    stamps = []
    for value in ("first", "second"):
        write(file, value)
        stamps.append(backups.copy_database(file, folder, full=False))
    return file, folder, stamps


def recovered(folder: Path, stamp: str) -> str:
    """Return the value in the database that a copy gives."""
    target = folder.parent / "recovered.fs"
    backups.recover_database(folder, stamp, target)
    return read(target)


def test_each_copy_gives_the_database_of_its_time(tmp_path: Path) -> None:
    """Also from a folder with a blank in its name."""
    _, folder, stamps = made(tmp_path)
    assert [recovered(folder, each) for each in stamps] == ["first", "second"]


def unlisted(path: Path) -> None:
    """The addition is in its place, and its line is not written."""
    path.write_text(path.read_text().splitlines(keepends=True)[0])


def half_listed(path: Path) -> None:
    """A part of the line is written."""
    path.write_text(path.read_text()[:-20])


def without_list(path: Path) -> None:
    """The full copy is in its place, and its list is not written."""
    path.unlink()


@pytest.mark.parametrize("cut_off", [unlisted, half_listed, without_list])
@pytest.mark.parametrize("value", ["second", "third"])
def test_a_copy_that_was_cut_off_is_followed_by_a_full_one(
    tmp_path: Path, cut_off: Callable[[Path], None], value: str
) -> None:
    """Whether or not anything was committed since: what is made afterwards can be brought back."""
    file, folder, (first, _) = made(tmp_path)
    cut_off(next(folder.glob("*.dat")))
    if value != "second":
        write(file, value)
    stamp = backups.copy_database(file, folder, full=False)
    assert (folder / f"{stamp}.fs").exists()
    assert recovered(folder, stamp) == value
    if cut_off is not without_list:
        assert recovered(folder, first) == "first"


def test_a_copy_that_is_not_listed_is_damaged(tmp_path: Path) -> None:
    """Its name is told, and an earlier one is the remedy."""
    _, folder, (_, second) = made(tmp_path)
    unlisted(next(folder.glob("*.dat")))
    with pytest.raises(BatosError, match=f"damaged: {second}.deltafs") as caught:
        recovered(folder, second)
    assert "earlier" in caught.value.remedy


def test_a_torn_end_with_nothing_new_before_it_is_no_fault(tmp_path: Path) -> None:
    """The addition has no bytes; the last commit is found before it."""
    file, folder, _ = made(tmp_path)
    last = backups.last_copied_commit(folder)
    assert last == backups.last_commit(file)
    commit = file.read_bytes()[4:]
    with file.open("ab") as data:
        data.write(commit[: len(commit) // 4])
    stamp = backups.copy_database(file, folder, full=False)
    assert (folder / f"{stamp}.deltafs").stat().st_size == 0
    assert backups.last_copied_commit(folder) == last == backups.last_commit(file)
    assert recovered(folder, stamp) == "second"
