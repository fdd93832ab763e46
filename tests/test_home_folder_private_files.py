"""Small files: whole or not there, for their owner or for everybody, and none that a stranger put there."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from batos import home_folder
from batos.protocol.errors import DiskFull


def test_a_file_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    """Written, it is there whole and alone; what was there before gives way, unless a new one was asked for."""
    path = tmp_path / "token"
    assert home_folder.write(path, "one\r\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not home_folder.write(path, "two", new=True)
    assert home_folder.read(path) == b"one\r\n"
    assert home_folder.write(path, "three")
    assert home_folder.read(path) == b"three"
    assert list(tmp_path.iterdir()) == [path]


def test_a_shared_file_is_readable_as_the_umask_allows(tmp_path: Path) -> None:
    """A codex or a Modelfile has the permissions that any program's file has."""
    (tmp_path / "plain").write_text("", encoding="utf-8")
    home_folder.write_shared(tmp_path / "shared", "text")
    assert (tmp_path / "shared").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_does_not_fit_is_not_there(tmp_path: Path) -> None:
    """A limit on files stands for a full disk: the old file stays, nothing lies beside it, and the error says so."""
    path = tmp_path / "file"
    home_folder.write(path, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(DiskFull, match="no room"):
            home_folder.write(path, "more than eight bytes")
        with pytest.raises(OSError, match="File too large") as raised:
            home_folder.write_shared(path, "more than eight bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG
    assert home_folder.read(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_small_file_is_not_read(tmp_path: Path) -> None:
    """A long file, a folder and a pipe without a writer are refused at once."""
    (tmp_path / "long").write_bytes(b"x" * (home_folder.LONGEST + 1))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("long", "folder", "pipe"):
        with pytest.raises(OSError, match=r"not a small file|Is a directory"):
            home_folder.read(tmp_path / name)
