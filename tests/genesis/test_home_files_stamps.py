"""A stamp differs whenever a file below the folders does, and says when it cannot be sure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.genesis.ticks import change_just_now, wait_for_a_tick

from batos.genesis.home_files import Stamp, stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files, one of them in a folder of its own, both long there."""
    (tmp_path / "robin" / "warm").mkdir(parents=True)
    for path in (tmp_path / "mind.toml", tmp_path / "robin" / "warm" / "lora.gguf"):
        path.write_bytes(b"what it says")
        wait_for_a_tick(path)
    return tmp_path


def seen(folder: Path) -> Stamp:
    """The stamp as it is when some time has gone by since the last change."""
    return Stamp(stamp(folder).entries, settled=True)


def test_nothing_changed(folder: Path) -> None:
    """Two looks at the same files are equal, however often they were read."""
    before = seen(folder)
    (folder / "mind.toml").read_bytes()
    assert stamp(folder).covers(before)
    assert not stamp(folder).covers(None)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content of another size": lambda folder: (folder / "mind.toml").write_bytes(b"another"),
    "content of the same size": lambda folder: (folder / "mind.toml").write_bytes(b"what he says"),
    "replaced": lambda folder: (folder / "mind.toml").replace(folder / "robin" / "mind.toml"),
    "removed, deep": lambda folder: (folder / "robin" / "warm" / "lora.gguf").unlink(),
    "added, deep": lambda folder: (folder / "robin" / "warm" / "more.gguf").write_bytes(b""),
    "an empty folder": lambda folder: (folder / "robin" / "cold").mkdir(),
    "no longer readable": lambda folder: (folder / "mind.toml").chmod(0),
}


@pytest.mark.parametrize("what", CHANGES)
def test_something_changed(folder: Path, what: str) -> None:
    """Any change of a file or a folder is another stamp."""
    before = seen(folder)
    CHANGES[what](folder)
    assert not stamp(folder).covers(before)


def test_a_change_that_keeps_its_time(folder: Path) -> None:
    """A tool that sets the old time back (as `cp -p` and archives do) is found by the time of the change itself."""
    path = folder / "mind.toml"
    old, before = path.stat(), seen(folder)
    path.write_bytes(b"what he says")
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert not stamp(folder).covers(before)


def test_what_changed_just_now_is_looked_at_again(folder: Path) -> None:
    """Two changes within one tick of the clock look alike, so what was read so early is not relied on."""
    change_just_now(folder / "mind.toml")
    fresh = stamp(folder)
    assert not fresh.settled
    assert not stamp(folder).covers(fresh)


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    """An absent folder is the same each time, and another once it is there."""
    before = stamp(tmp_path / "codex", tmp_path / "adapters")
    assert before == Stamp((), settled=True)
    (tmp_path / "adapters").mkdir()
    assert not stamp(tmp_path / "codex", tmp_path / "adapters").covers(before)


def test_a_link_that_leads_nowhere(folder: Path) -> None:
    """What cannot be looked at is passed over; what it belongs to is looked at by whoever reads it."""
    (folder / "robin" / "away").symlink_to(folder / "nowhere")
    assert any(entry[0].endswith("mind.toml") for entry in stamp(folder).entries)


def test_links_that_lead_nowhere_or_in_a_circle(folder: Path) -> None:
    """A link to itself is no file, and one that leads back up is not followed for ever."""
    within = folder / "robin" / "warm"
    (within / "self").symlink_to("self")
    (within / "nowhere").symlink_to("not there")
    (folder / "up").symlink_to("..")
    (folder / "robin" / "root").symlink_to("/")
    found = dict(stamp(folder).entries)
    assert str(within / "lora.gguf") in found
    assert not found.keys() & {str(within / "self"), str(within / "nowhere")}
    assert max(len(Path(each).relative_to(folder).parts) for each in found) == 3
