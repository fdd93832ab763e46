"""A run that was forked is what a run started from nothing is, and ends with the test that asked for it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.front.processes import HERE, STEM, User


@pytest.fixture
def newcomer(tmp_path: Path) -> User:
    """A user without anything, at whose daemon's address nothing listens."""
    return User(tmp_path / "none", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "arguments",
    [("config", "--json"), ("doctor",), ("genesis", "--plan"), ("asj",), ("--version",), ()],
    ids=lambda arguments: " ".join(arguments) or "bare",
)
def test_it_says_and_exits_as_a_fresh_one(newcomer: User, arguments: tuple[str, ...]) -> None:
    """The same streams and the same exit, whether the verb succeeds, fails or is mistyped."""
    assert newcomer.run(*arguments) == replace(newcomer, fresh=True).run(*arguments)


def test_each_has_its_own_environment(newcomer: User) -> None:
    """What one run was told is not there in the next."""
    told = newcomer.run("config", "--json", environ={"BATOS_MISSIONS": "3"}).document["data"]
    again = newcomer.run("config", "--json").document["data"]
    assert told != again
    assert again == replace(newcomer, fresh=True).run("config", "--json").document["data"]


def test_it_ends_with_who_asked(newcomer: User) -> None:
    """A test that gives up on a run leaves nothing behind: the run is killed with what stood for it."""
    command = [sys.executable, "-I", "-S", str(HERE / "asking.py"), STEM.address, "emulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=newcomer.environ()) as asker:
        assert asker.stdout is not None
        where = urlsplit(next(word for word in asker.stdout.readline().split() if word.startswith("http://")))
        assert where.hostname is not None
        assert where.port is not None
        asker.kill()
    while listens(where.hostname, where.port):
        time.sleep(0.01)


def listens(host: str, port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((host, port)) == 0
