"""docs/tutorial.md as its reader meets it: every command in order in one shell, and what it is said to print."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.ports import free_port
from tests.cli.processes import PATIENT
from tests.composing import ROOT
from tests.lending import lent
from tests.waiting import HANG

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
#: The first frame makes an environment, which takes a minute and a network: CI's own demo does that.
CLONING = "make demo\n"
MARK = "-- the end of a frame: "


class Frame(NamedTuple):
    """What is typed, and the fragments that are printed then, in this order."""

    typed: str
    printed: list[str]


def frames(text: str) -> Iterator[Frame]:
    """Every frame of `sh` with the frame of `text` under it."""
    for typed, printed in re.findall(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", text, re.DOTALL):
        yield Frame(typed, printed.splitlines())


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """What `make demo` leaves of a clone, as far as the tutorial touches it; its `batos` is ready at once."""
    folder = tmp_path / "batos"
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    with lent(folder / ".venv" / "bin" / "batos"):
        yield folder


def environ(folder: Path) -> dict[str, str]:
    """A shell of nobody in particular, whose server listens where nobody else does.

    The clone's home is named: the `batos` that is lent runs from another checkout (tests/test_home_folder.py).
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    ports = {f"BATOS_{name}": f"tcp://127.0.0.1:{free_port()}" for name in ("BIND", "EVENTS")}
    homes = {"HOME": str(folder.parent), "BATOS_HOME": str(folder / ".batos")}
    return {**own, **PATIENT, **ports, **homes, "NO_COLOR": "1", "BATOS_DEBUG_LOOP": "1", "BATOS_HTTP": "off"}


def run(script: str, folder: Path) -> str:
    """Everything that a shell prints of it; a command that fails ends it (`set -e`), and nothing outlives it."""
    with subprocess.Popen(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=folder, env=environ(folder), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as shell:  # fmt: skip
        try:
            out, err = shell.communicate(timeout=HANG)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, f"{out[-3000:]}\n{err[-3000:]}"
    return out


def test_it_does_what_it_says(clone: Path) -> None:
    """From genesis to a facet of one's own and back: each command succeeds and prints what the text shows of it."""
    first, *rest = frames(TUTORIAL)
    assert first == Frame(CLONING, [])
    before = {path.name for path in clone.iterdir()}
    script = "".join(
        f"{{\n{frame.typed}}} 2>&1\nprintf '\\n%s\\n' '{MARK}{number}'\n" for number, frame in enumerate(rest)
    )
    told = run(script, clone)
    for number, frame in enumerate(rest):
        said, _, told = told.partition(f"\n{MARK}{number}\n")
        at = 0
        for line in frame.printed:
            at = said.find(line, at)
            assert at >= 0, f"{line!r} is not in what came of\n{frame.typed}\n{said}"
            at += len(line)
    assert {path.name for path in clone.iterdir()} <= before | {".batos", "modelfiles"}  # which git does not look at


def test_what_it_clones_and_makes_is_there() -> None:
    """The recipe of its first frame is one of the Makefile's."""
    assert re.search(r"^demo: ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
