"""One emulator for all end-to-end tests of this folder, and users whose genesis is done, each with a copied home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.front.processes import STEM, User, emulator


@pytest.fixture(scope="session", autouse=True)
def stem_ends() -> Iterator[None]:
    """The process that forks for short runs ends with the session."""
    yield
    STEM.close()


@pytest.fixture(scope="session")
def ollama() -> Iterator[str]:
    """The address of an emulator that runs as a process."""
    with emulator() as url:
        yield url


@pytest.fixture(scope="session")
def grown(tmp_path_factory: pytest.TempPathFactory, ollama: str) -> Path:
    """A home after genesis, which nobody changes."""
    home = tmp_path_factory.mktemp("grown") / "home"
    made = User(home, ollama).run("genesis", "--json")
    assert made.code == 0, made.err
    return home


@pytest.fixture
def user(tmp_path: Path, ollama: str, grown: Path) -> User:
    """A user whose genesis is done."""
    return User(Path(shutil.copytree(grown, tmp_path / "home")), ollama)
