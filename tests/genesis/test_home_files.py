"""A home's codex and adapters: read once, and again when a file has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.genesis.ticks import HOUR_NS, change_just_now

from batos.config import Settings
from batos.genesis.home_files import SETTLED_NS, HomeFiles
from batos.protocol.errors import CodexError


@pytest.fixture
def files(tmp_path: Path) -> HomeFiles:
    """The files of a new home."""
    return HomeFiles(Settings(home=tmp_path / "home"))


def settle() -> None:
    """Wait until a change would leave its mark."""
    time.sleep(2 * SETTLED_NS / 1e9)  # any pace: it takes at least as long


def test_nothing_is_known_before_the_first_look(files: HomeFiles) -> None:
    """The first one copies the shipped codex."""
    assert files.recall() is None
    assert set(files.read().codex.personas) == {"ROBIN", "BRICK", "BABS", "ALFRED"}


def test_unchanged_files_are_not_read_again(files: HomeFiles, tmp_path: Path) -> None:
    """What was read is the very same object, until a file changes or the contents are forgotten."""
    codex = tmp_path / "home" / "codex" / "robin.toml"
    files.read()
    change_just_now(codex)
    files.read()
    assert files.recall() is None, "a file that has just been written may change within the same tick"
    os.utime(codex, ns=(time.time_ns() - HOUR_NS,) * 2)
    settle()
    read = files.read()
    assert files.recall() is read
    files.forget()
    assert files.recall() is None


def test_a_changed_file_is_read_again(files: HomeFiles, tmp_path: Path) -> None:
    """Also a new one in the folder of the adapters."""
    codex = tmp_path / "home" / "codex" / "robin.toml"
    files.read()
    settle()
    before = files.read()
    codex.write_text(codex.read_text(encoding="utf-8").replace("warm", "calm"), encoding="utf-8")
    assert files.recall() is None
    assert files.read().codex.digest != before.codex.digest
    settle()
    files.read()
    (tmp_path / "home" / "adapters" / "robin" / "new").mkdir(parents=True)
    assert files.recall() is None


def test_a_wrong_file_is_an_error_each_time(files: HomeFiles, tmp_path: Path) -> None:
    """The contents before it are not used in its place."""
    files.read()
    settle()
    files.read()
    (tmp_path / "home" / "codex" / "robin.toml").write_text("= nothing", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(CodexError):
            files.read()
        assert files.recall() is None
