"""The door for work says what a machine lacks, and every recipe is explained."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANG

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / "scripts" / "venv.sh"


def venv(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run scripts/venv.sh; `path` is a folder in which commands are looked for first."""
    environ = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
    return subprocess.run(
        [VENV, *map(str, arguments)], capture_output=True, text=True, check=False, env=environ, cwd=ROOT
    )


def interpreter(folder: Path, body: str) -> None:
    """A stand-in for a Python that lacks something: a script by its name."""
    folder.mkdir()
    script = folder / "python3.77"
    script.write_text(f'#!/bin/sh\n{body}\nexec {sys.executable} "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def test_a_missing_python_is_named_with_its_package(tmp_path: Path) -> None:
    """Without the interpreter the Makefile names Debian's packages and the way to use another one."""
    done = venv("make", "python3.77", "dev", tmp_path / "env" / ".installed")
    assert done.returncode == 2
    assert "apt-get install python3.11 python3.11-venv" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_a_missing_venv_module_is_named_with_its_package(tmp_path: Path) -> None:
    """Debian's Python comes without ensurepip; the package that brings it is named by version."""
    interpreter(tmp_path / "bin", 'case "$*" in *ensurepip*) exit 1;; esac')
    done = venv("make", "python3.77", "dev", tmp_path / "env" / ".installed", path=tmp_path / "bin")
    assert done.returncode == 2
    assert f"apt-get install python3.{sys.version_info.minor}-venv" in done.stderr
    assert not (tmp_path / "env").exists()


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    """A Python older than 3.11 is refused before anything is made."""
    interpreter(tmp_path / "bin", 'case "$*" in *"(3, 11)"*) exit 1;; esac')
    done = venv("make", "python3.77", "dev", tmp_path / "env" / ".installed", path=tmp_path / "bin")
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr


@pytest.mark.parametrize(
    ("python", "extras", "stale"),
    [("", "", False), ("python3.11", "dev", False), ("", "dev,bench", True), ("python3.12", "", True)],
)
def test_only_what_is_asked_for_installs_again(tmp_path: Path, python: str, extras: str, stale: bool) -> None:
    """An environment is stale when another interpreter or other extras are named, not when none are."""
    stamp = tmp_path / ".installed"
    stamp.write_text("python3.11\ndev\n", encoding="utf-8")
    done = venv("stale", python, extras, stamp)
    assert done.returncode == 0
    assert bool(done.stdout.strip()) is stale


def test_an_environment_of_the_demo_gets_tools_when_they_are_needed(tmp_path: Path) -> None:
    """What was made without any is stale for everything but the demo itself."""
    stamp = tmp_path / ".installed"
    stamp.write_text("python3.11\nnone\n", encoding="utf-8")
    assert venv("stale", "", "", stamp).stdout.strip()
    assert not venv("stale", "", "none", stamp).stdout.strip()


def test_a_demo_installs_no_tools(tmp_path: Path) -> None:
    """`make demo` in a new clone asks for BAT OS alone; where there is an environment it is taken as it is."""
    stamp = tmp_path / ".installed"
    shown = ("--eval", 'shown: ; @echo "extras $(EXTRAS)"', "--eval", "demo: shown", "--dry-run", "demo")
    assert "extras none" in make(*shown, f"VENV={tmp_path}")
    stamp.write_text("python3.11\ndev,bench\n", encoding="utf-8")
    assert "extras dev,bench" in make(*shown, f"VENV={tmp_path}")


def test_a_room_asks_for_no_servers(tmp_path: Path) -> None:
    """`make room` in a new clone asks for the small environment; a larger one is taken as it is."""
    stamp = tmp_path / ".installed"
    shown = ("--eval", 'shown: ; @echo "extras $(EXTRAS)"', "--eval", "room: shown", "--dry-run", "room", "ROOM=gate")
    for written, extras in ((None, "test"), ("none", "test"), ("test", "test"), ("dev,bench", "dev,bench")):
        if written:
            stamp.write_text(f"python3.11\n{written}\n", encoding="utf-8")
        assert f'"extras {extras}"' in make(*shown, f"VENV={tmp_path}")
    stamp.write_text("python3.11\ntest\n", encoding="utf-8")
    assert venv("stale", "", "", stamp).stdout.strip(), "the whole suite needs more"


def test_a_room_is_checked_alone() -> None:
    """The sources and tests of the room are linted, typed and run, and nothing beside."""
    lines = make("--dry-run", "room", "ROOM=gate").splitlines()
    assert [line for line in lines if line.endswith("src/batos/gate tests/gate")] == [
        f".venv/bin/{tool} src/batos/gate tests/gate"
        for tool in ("ruff check", "ruff format --check", "mypy --follow-imports silent")
    ]
    assert ".venv/bin/python -m pytest -q tests/gate " in lines


def test_every_recipe_is_explained() -> None:
    """`make` alone lists every recipe that a person may call."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE)) - {"other-environment"}
    listed = make("help")
    assert {line.split()[0] for line in listed.splitlines() if line.strip()} == recipes


@pytest.mark.parametrize(
    "script", [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"], ids=lambda p: p.name
)
def test_scripts_are_valid_shell(script: Path) -> None:
    """Every script is one that bash can read."""
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def make(*arguments: str, **more: str) -> str:
    """What `make` says; nothing of a `make` that may run these tests is seen."""
    own = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS", "WORKERS"}
    environ = {name: value for name, value in os.environ.items() if name not in own} | more
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environ).stdout


def test_the_whole_suite_runs_side_by_side() -> None:
    """`make test` takes every core, and one process more; named tests are run by one, and a person may say how many."""
    all_cores = f" -n {os.sysconf('SC_NPROCESSORS_ONLN') + 1} "
    assert all_cores in make("--dry-run", "test")
    assert " -n 1 " in make("--dry-run", "test", "WORKERS=1")
    assert all_cores in make("--dry-run", "fuzz")
    named = make("--dry-run", "test", "ARGS=tests/image -k undo")
    assert " -n 0 " in named
    assert named.rstrip().endswith(" tests/image -k undo")


def test_what_make_runs_keeps_compiled_modules() -> None:
    """A shell that forbids them would make every process of the suite compile the whole program anew."""
    shown = make("--eval", "shown: ; @env", "shown", PYTHONDONTWRITEBYTECODE="1")
    assert "PYTHONDONTWRITEBYTECODE" not in shown
    assert "PYTHONUNBUFFERED=1" in shown.splitlines()


def test_real_alone_runs_tests_and_a_named_model_does_not() -> None:
    """`make real` brings the smallest model and runs the tests that need it; MODEL= brings that one."""
    called = re.compile(r"real\.sh (.*\S)")
    assert called.findall(make("--dry-run", "real")) == ["install", "test"]
    assert called.findall(make("--dry-run", "real", "MODEL=qwen-1.5b")) == ["install qwen-1.5b"]


def ci(folder: Path, fails: str = "") -> subprocess.CompletedProcess[str]:
    """Run .ci/run with a stand-in for `make`, which fails where it is told to."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    stand_in = folder / "bin" / "make"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "made $1"\n[ "$1" != "$FAILS" ] || exit 3\n', encoding="utf-8")
    stand_in.chmod(0o755)
    environ = {**os.environ, "PATH": f"{stand_in.parent}:{os.environ['PATH']}", "FAILS": fails}
    environ |= {"PYTHON": sys.executable, "TMPDIR": str(folder)}
    command = [folder / ".ci" / "run"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=HANG)


def test_ci_tells_the_seconds_of_each_part(tmp_path: Path) -> None:
    """Every part runs, says what it says in one piece under its name, and is listed at the end with its seconds."""
    done = ci(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    parts = ["venv", "lint", "wheel", "demo", "test", "real", "crash", "crash"]
    assert re.findall(r"^=== .+ \(\d+ s\)\nmade (\w+)$", done.stdout, re.MULTILINE) == parts
    _, _, summary = done.stdout.partition("=== all held")
    listed = re.findall(r"^ +\d+ s  (\w+)", summary, re.MULTILINE)
    assert listed == ["environment", "checks", "wheel", "demo", "tests", "real", "crash", "crash", "in"]
    assert summary.endswith("made test\n"), "the last line is the tests' own"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp")]


@pytest.mark.parametrize("part", ["venv", "lint", "wheel", "demo", "test", "crash", "real"])
def test_ci_ends_with_the_part_that_failed(tmp_path: Path, part: str) -> None:
    """A part that fails, alone or beside others, is shown and fails the run; nothing is said to have held."""
    done = ci(tmp_path, fails=part)
    assert done.returncode == 3
    assert f"made {part}" in done.stdout
    assert "all held" not in done.stdout
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp")]
