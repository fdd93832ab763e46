"""A command that is called does what a process of it does, and leaves nothing in the process that called it."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from tests.cli.processes import User

from batos.cli import entry
from batos.cli.command_line import Surroundings


@pytest.fixture
def newcomer(tmp_path: Path) -> User:
    """A user without anything, at whose daemon's address nothing listens."""
    return User(tmp_path / "none", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "arguments",
    [("config", "--json"), ("doctor",), ("genesis", "--plan"), ("asj",), ("--version",), ()],
    ids=lambda arguments: " ".join(arguments) or "bare",
)
def test_it_says_and_exits_as_a_process(newcomer: User, arguments: tuple[str, ...]) -> None:
    """The same streams and the same exit, whether the verb succeeds, fails or is mistyped."""
    called, started = newcomer.run(*arguments), newcomer.process(*arguments)
    # What is free on the disk may change between the two.
    called, started = (replace(ran, out=re.sub(r"[\d.]+ \w+ free", "", ran.out)) for ran in (called, started))
    assert called == started


def test_each_call_has_its_own_environment(newcomer: User) -> None:
    """What one call was told is not there in the next."""
    told = newcomer.run("config", "--json", environ={"BATOS_MISSIONS": "3"}).document["data"]
    again = newcomer.run("config", "--json").document["data"]
    assert (told["missions"]["value"], again["missions"]["value"]) == (3, 8)
    assert {**told, "missions": None} == {**again, "missions": None}


def test_it_stands_in_its_folder(newcomer: User, tmp_path: Path) -> None:
    """A path that does not begin at the root begins there, in the command alone."""
    there, before = tmp_path / "there", Path.cwd()
    there.mkdir()
    (there / "note.txt").write_text("The tide was low.", encoding="utf-8")
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(3)]
    surroundings = Surroundings(newcomer.environ(), there, *streams)
    assert entry.run(["ask", "--file", "note.txt", "Was it low?"], surroundings) != 2
    assert entry.run(["ask", "--file", "none.txt", "Was it low?"], surroundings) == 2
    assert Path.cwd() == before


@pytest.mark.parametrize("arguments", [("ask", "Why?"), ("config",), ("config", "--log-level", "debug"), ("chat",)])
def test_it_leaves_nothing_behind(user: User, arguments: tuple[str, ...]) -> None:
    """Streams, environment, folder, umask, signals, loop, logs and threads are as they were before the call."""

    def state() -> tuple[object, ...]:
        umask = os.umask(0o022)
        os.umask(umask)
        root = logging.getLogger()
        return (
            (sys.stdin, sys.stdout, sys.stderr, dict(os.environ), Path.cwd(), umask),
            [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            (structlog.is_configured(), structlog.get_config(), list(root.handlers), root.level),
            threading.enumerate(),
            asyncio._get_running_loop(),
        )

    before = state()
    assert user.run(*arguments).code == 0
    assert state() == before
