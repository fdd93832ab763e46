"""Memories are named by the paths that they were remembered with, also once the files are deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.cli.processes import User

from batos.cli.typed_names import deleted_place, place_of

LAMP = "The keeper Maro winds the clockwork of the lamp."


@pytest.fixture
def deleted(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """Who has remembered the notes of a folder, and deleted it."""
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in (("lamp.md", LAMP), ("oil.md", "Oil is dear this winter."), ("gull.md", "Gulls cry all night.")):
        (notes / name).write_text(text)
    assert user.run("remember", "notes").code == 0
    assert user.run("remember", "Fog rose over the pier.", "--source", "diary/fog.md").code == 0
    shutil.rmtree(notes)
    return user


def test_a_deleted_file_is_shown_and_corrected_by_its_path(deleted: User) -> None:
    """Each verb finds it; a source that was chosen goes before a path."""
    assert LAMP in deleted.run("memories", "notes/lamp.md").out
    assert "clockwork" in deleted.run("recall", "clockwork", "--source", "notes/lamp.md").out
    assert "pier" in deleted.run("recall", "pier", "--source", "diary/fog.md").out
    assert deleted.run("memories", "edit", "notes/lamp.md", "Anna winds it.").code == 0
    assert deleted.run("pin", "notes/lamp.md", "diary/fog.md").code == 0
    assert deleted.run("memories", "retract", "--source", "notes/lamp.md").code == 0
    assert deleted.run("memories", "restore", "notes/lamp.md").code == 0


def test_deleted_files_are_forgotten_by_their_paths(deleted: User) -> None:
    """Together with what is named otherwise, or none of them; who is told of a name is told the one that was given."""
    missing = deleted.run("forget", "notes/lamp.md", "notes/none.md")
    assert (missing.code, "'notes/none.md'" in missing.err) == (2, True), missing.err
    told = deleted.run("forget", "notes/lamp.md", "diary/fog.md", "notes/oil.md")
    assert (told.code, told.out.count("Forgotten: ")) == (0, 3), told.err
    assert "Nothing" in deleted.run("recall", "clockwork oil pier", "--source", "notes/lamp.md").out


def test_a_deleted_file_is_erased_by_its_path(deleted: User) -> None:
    """The memory itself, and not the words of its path."""
    told = deleted.run("forget", "--erase", "notes/gull.md", "--yes", "--json").document["data"]
    assert (told["kind"], len(told["memories"])) == ("memory", 1)
    assert deleted.run("forget", "--erase", "notes/none.md", "--yes").code == 2


def test_a_name_has_the_place_of_a_file_only_where_it_can_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that is there the place is its absolute path, and other names are left as they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.md").write_text("x")
    assert place_of("here.md") == str(tmp_path / "here.md")
    assert place_of("gone.md") == "gone.md"
    assert deleted_place("gone.md") == str(tmp_path / "gone.md")
    assert [deleted_place(each) for each in ("here.md", str(tmp_path / "gone.md"), "", "a\0b")] == [""] * 4
