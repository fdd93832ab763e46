"""One emulator for all end-to-end tests of this folder, and users whose genesis is done, each with a copied home."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.processes import User, emulator
from tests.waiting import HANG

from batos.config import Settings
from batos.events import Events
from batos.uvm import open_uvm


@pytest.fixture(scope="session")
def ollama() -> Iterator[str]:
    """The address of an emulator that runs as a process."""
    with emulator() as url:
        yield url


@pytest.fixture(scope="session")
def grown(tmp_path_factory: pytest.TempPathFactory, ollama: str) -> Path:
    """A home after genesis whose router has learnt the codex, which nobody changes."""
    home = tmp_path_factory.mktemp("grown") / "home"
    made = User(home, ollama).run("genesis", "--json")
    assert made.code == 0, made.err
    mask = os.umask(0o077)  # as the command has it
    asyncio.run(learnt(home, ollama))
    os.umask(mask)
    return home


async def learnt(home: Path, ollama: str) -> None:
    """What the first mission waits for: its copies find it in the image."""
    settings = Settings(home=home, ollama_host=ollama, connect_seconds=HANG, between_tokens_seconds=HANG)
    async with open_uvm(settings, Events(log=False)) as uvm:
        await uvm.readiness.check()


@pytest.fixture
def user(tmp_path: Path, ollama: str, grown: Path) -> User:
    """A user whose genesis is done."""
    return User(Path(shutil.copytree(grown, tmp_path / "home")), ollama)
