"""The emulator's own command: the same options as `batos emulator`, and errors of its own."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.waiting import HANG

from batos.cli.verbs.emulator_verb import emulator
from ollama_emulator import command, emulator_errors
from ollama_emulator.options import Options


def test_options_become_those_of_the_emulator() -> None:
    """Every flag has its field, and a list of authors is cut at commas."""
    called: list[Options] = []

    def run(options: Options) -> int:
        called.append(options)
        return 0

    made = command.command("stand-in", run, str)
    flags = ["--port", "0", "--vram", "4", "--tok-s", "20", "--model", "a", "--model", "b", "--author", "good, hostile"]
    assert CliRunner().invoke(made, flags).exit_code == 0
    given = called[0]
    assert (given.port, given.vram, given.tok_s) == (0, 4.0, 20.0)
    assert (given.models, given.authors) == (("a", "b"), ("good", "hostile"))


@pytest.mark.parametrize("topic", ["faults", "the-registry", "authors-of-methods"])
def test_the_help_names_the_manual_that_was_given(topic: str) -> None:
    """The page of a topic is what `manual` returns for it."""
    made = command.command("stand-in", lambda options: 0, lambda name: f"page {name}")
    shown = CliRunner().invoke(made, ["--help"]).output
    assert f"page {topic}" in " ".join(shown.split()).replace("- ", "-")


def test_both_commands_take_the_same_options() -> None:
    """`batos emulator` and the emulator's own differ in nothing but where they say to read."""
    own = command.command("own", lambda options: 0, str)
    assert [each.opts for each in own.params] == [each.opts for each in emulator.params]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--parallel", "0"], "--parallel"),
        (["--host", "0.0.0.0"], "loopback only. Use 127.0.0.1"),  # refused
        (["--author", "nobody"], "there is no author 'nobody'"),
        (["--gguf", "smollm2", "--endless"], "Leave out --endless, or --gguf."),
    ],
)
def test_a_wrong_option_ends_the_command_with_2(flags: list[str], told: str) -> None:
    """Standard error says what is wrong and what to do, without a traceback; nothing was started."""
    ran = _own("--port", "0", *flags)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_port_that_is_taken_is_an_error_of_the_tree() -> None:
    """The message names the port, and the remedy a way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = _own("--port", str(port))
    assert ran.returncode == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in ran.stderr
    assert "--port 0" in ran.stderr


def test_every_error_is_in_the_tree() -> None:
    """The errors module holds one root, and every other error of it descends from that."""
    found = [each for each in vars(emulator_errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert len(found) > 1
    assert all(issubclass(each, emulator_errors.EmulatorError) for each in found)


def _own(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ollama_emulator", *arguments], capture_output=True, text=True, timeout=HANG, check=False
    )
