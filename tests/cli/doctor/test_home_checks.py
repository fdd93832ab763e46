"""The house: what needs another disk, another user or another clock to be wrong, and what is never wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.cli.damaged_homes import left

from batos.cli.doctor import home_checks
from batos.client import addresses
from batos.config import Settings
from batos.genesis.integrity import Finding

NEVER = 2**60

#: What only here is in its wrong state, by id.
HERE: Mapping[str, Callable[[Path], Finding]] = {
    "disk.home": lambda home: home_checks.disk("disk.home", home / "not" / "yet", NEVER, "there"),
    "disk.store": lambda home: home_checks.store(home, least=NEVER)[0],
    "home.writable": lambda home: home_checks.writable(home, may=lambda path, mode: False),
    "clock.sane": lambda home: home_checks.clock(last=1_000_000.0 + 3_600, now=1_000_000.0),
}


@pytest.mark.parametrize("id_", HERE)
def test_what_is_wrong(tmp_path: Path, id_: str) -> None:
    """A full disk, a home of somebody else's and a clock that is behind are found, with a remedy."""
    found = HERE[id_](tmp_path)
    assert (found.id, found.ok) == (id_, False)
    assert found.remedy


def test_what_is_right(tmp_path: Path) -> None:
    """With room, rights and time there is nothing to say, and a home that is not there yet is not made."""
    home = tmp_path / "deep" / "home"
    found = list(home_checks.findings(Settings(home=home)))
    assert [each.id for each in found if not each.ok] == []
    assert not home.parent.exists()
    assert home_checks.store(tmp_path)[0].ok
    assert home_checks.clock(last=1_000_000.0 + home_checks.SLACK, now=1_000_000.0).ok
    assert home_checks.clock(last=0.0).ok


@pytest.mark.parametrize("blob", ["", "blobs/sha256-0", "/nowhere/blobs/sha256-0"])
def test_another_machines_disk_is_not_looked_at(blob: str) -> None:
    """Where the daemon's files are not here, nothing is said of its disk."""
    assert home_checks.store(Path(blob)) == []


def test_a_server_that_runs(tmp_path: Path) -> None:
    """A note of a process that is there, or that belongs to somebody else, is believed."""
    for pid in (os.getpid(), 1):
        addresses.write_record(tmp_path, left(pid))
        found = {each.id: each for each in home_checks.findings(Settings(home=tmp_path))}
        assert found["home.server"].ok
        assert str(pid) in found["home.server"].what


def test_many_open_files_are_counted(tmp_path: Path) -> None:
    """Five are named, the others counted; a link says nothing of what it leads to."""
    tmp_path.chmod(0o700)
    for number in range(8):
        path = tmp_path / f"image{number}.fs"
        path.touch()
        path.chmod(0o644)
    (tmp_path / "token").symlink_to("/etc/passwd")
    found = {each.id: each for each in home_checks.findings(Settings(home=tmp_path))}
    assert not found["home.files"].ok
    assert "and 3 more" in found["home.files"].what
    assert "token" not in found["home.files"].what


def test_a_command_that_is_told_can_be_pasted(tmp_path: Path) -> None:
    """A home whose path has blanks stands in quotes."""
    home = tmp_path / "my home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    found = {each.id: each for each in home_checks.findings(Settings(home=home))}
    assert found["home.private"].remedy == f"chmod 700 '{home}'"
