"""Files to be remembered: in order, without hidden ones, and with a reason for each that is skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from batos.cli.verbs.memory_files import FileReader
from batos.errors import BriefError


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    """Folders within it too; what is hidden or made by machines is passed over, what is no text is skipped."""
    for name in ("b.txt", "a.txt", "deep/c.txt", ".git/config", "__pycache__/x.txt", "deep/.d"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name, encoding="utf-8")
    (tmp_path / "z.bin").write_bytes(b"\0\1")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "deep" / "pipe")
    reader = FileReader(100)
    found = list(reader.read(tmp_path))
    assert [each.file.data.decode() for each in found] == ["a.txt", "b.txt", "deep/c.txt"]
    assert found[0].source == str((tmp_path / "a.txt").resolve())
    assert sorted(Path(each).name for each in reader.skipped) == ["empty.txt", "gone.txt", "pipe", "z.bin"]


def test_a_file_that_was_named_must_be_one(tmp_path: Path) -> None:
    """It is refused with the reason, and not skipped."""
    (tmp_path / "z.bin").write_bytes(b"\0\1")
    (tmp_path / "long.txt").write_text("x" * 101, encoding="utf-8")
    for name in ("z.bin", "long.txt", "none.txt"):
        reader = FileReader(100)
        with pytest.raises(BriefError):
            list(reader.read(tmp_path / name))
        assert reader.skipped == {}
