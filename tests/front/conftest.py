"""One emulator for all end-to-end tests of this folder, and a user whose genesis is done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.front.processes import User, emulator


@pytest.fixture(scope="session")
def ollama() -> Iterator[str]:
    """The address of an emulator that runs as a process."""
    with emulator() as url:
        yield url


@pytest.fixture
def user(tmp_path: Path, ollama: str) -> User:
    """A user whose genesis is done."""
    user = User(tmp_path / "home", ollama)
    made = user.run("genesis", "--json")
    assert made.code == 0, made.err
    return user
