"""What a shell is offered: verbs, options, choices; and the scripts that make it ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from tests.cli.processes import BATOS

from batos.cli import entry


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    *before, last = words
    return [
        item.value for item in ShellComplete(entry.batos, {}, "batos", "_BATOS_COMPLETE").get_completions(before, last)
    ]


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without a server."""
    monkeypatch.setenv("BATOS_HOME", str(tmp_path / "home"))


def test_verbs() -> None:
    """By what they begin with; after a dash the options of all."""
    assert offered("mis") == ["missions"]
    assert offered("s") == [name for name in entry.VERBS if name.startswith("s")]
    assert offered("--ver") == ["--version"]


def test_options_and_choices() -> None:
    """Of the verb that is being written: its options, the personas, the efforts, the choices of a setting."""
    assert offered("ask", "--eff") == ["--effort"]
    assert offered("ask", "--effort", "") == ["auto", "reflex", "cycle", "council"]
    assert offered("ask", "--persona", "b") == ["brick", "babs"]
    assert offered("ask", "--log-level", "d") == ["debug"]
    assert offered("adapters", "") == ["check", "convert", "list", "use"]


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "--file"), ("chat", "--file"), ("submit", "--file"), ("method", "redefine", "--file"),
        ("method", "redefine", "--checks"), ("keys", "new", "--out"), ("status", "--server"), ("emulator", "--faults"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_file_is_left_to_the_shell(words: tuple[str, ...]) -> None:
    """Where a file belongs the shell is told so, and completes its name."""
    (item,) = ShellComplete(entry.batos, {}, "batos", "_BATOS_COMPLETE").get_completions([*words], "exa")
    assert (item.type, item.value) == ("file", "exa")


def test_missions_without_a_server() -> None:
    """There is `last`; no home is made and no image opened for a list."""
    assert offered("show", "") == ["last"]
    assert offered("inspect", "") == []
    assert offered("approve", "") == []
    assert offered("approvals", "--status", "e") == ["expired"]
    assert not Path(os.environ["BATOS_HOME"]).exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    """It names the program and the variable by which the shell asks it."""
    done = subprocess.run([*BATOS, "completion", shell], capture_output=True, text=True, check=True)
    assert "_BATOS_COMPLETE" in done.stdout
    assert done.stderr == ""
    assert click.shell_completion.get_completion_class(shell) is not None


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    """A bash that has read the script offers what fits, and says nothing else."""
    program = tmp_path / "batos"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m batos "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    ask = (
        'eval "$(batos completion bash)"; COMP_WORDS=(batos codex ch); COMP_CWORD=2; _batos_completion batos ch codex; '
        'echo "${COMPREPLY[@]}"'
    )
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, env=environ)
    assert (done.stdout, done.stderr) == ("check\n", "")
