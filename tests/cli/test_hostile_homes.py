"""What is wrong with a home, its logs or the program itself is told as every error is, and never in a traceback."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.cli import failing_verb
from tests.cli.processes import ProcessResult, User, emulator
from tests.fork_server import ForkedCommand

NO_DAEMON = "http://127.0.0.1:9"


def fail(home: Path, *arguments: str) -> ProcessResult:
    """Run the verb that is broken."""
    process = ForkedCommand(
        ["broken", *arguments], User(home, NO_DAEMON).environ(), None, None, None, script=Path(failing_verb.__file__)
    )
    said = process.communicate()
    return ProcessResult(process.wait(), *said)


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_what_nobody_foresaw_is_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """An error that is none of ours ends with 1, its name and text, a remedy, and its traceback in the log alone."""
    ran = fail(tmp_path, *arguments)
    assert ran.code == 1
    assert "Traceback" not in ran.out + ran.err
    told = ran.document["error"] if arguments else {"message": ran.err, "remedy": ran.err}
    assert "ZeroDivisionError: no part of 8 is left" in told["message"]
    assert "report" in told["remedy"]
    line = json.loads((tmp_path / "logs" / "batos.log").read_text(encoding="utf-8").splitlines()[-1])
    assert line["level"] == "error"
    assert "Traceback" in line["exception"]
    assert "failing_verb.py" in line["exception"]


def test_debug_shows_where_it_came_from(tmp_path: Path) -> None:
    """With --log-level debug the traceback is on stderr too, and stdout stays one document."""
    ran = fail(tmp_path, "--json", "--log-level", "debug")
    assert (ran.code, ran.document["error"]["code"], len(ran.documents)) == (1, "internal", 1)
    assert "Traceback" in ran.err


@pytest.mark.parametrize("home", ["/proc/nope", "/dev/null/nope"])
def test_a_home_that_cannot_be(home: str) -> None:
    """A home that cannot be made is an error that names it and says how to name another."""
    ran = User(Path(home), NO_DAEMON).run("missions", "--json")
    assert (ran.code, ran.document["error"]["code"]) == (2, "config")
    assert home in ran.document["error"]["message"]
    assert ran.document["error"]["remedy"]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("kind", ["dangling folder", "file as folder", "folder as file", "dangling file"])
def test_logs_that_cannot_be_stop_nothing(tmp_path: Path, kind: str) -> None:
    """Without a log file a verb does what it does, and says once that there is none."""
    logs = tmp_path / "home" / "logs"
    logs.parent.mkdir()
    if kind == "dangling folder":
        logs.symlink_to(tmp_path / "nowhere" / "logs")
    elif kind == "file as folder":
        logs.write_text("", encoding="utf-8")
    elif kind == "folder as file":
        (logs / "batos.log").mkdir(parents=True)
    else:
        logs.mkdir()
        (logs / "batos.log").symlink_to(tmp_path / "nowhere" / "batos.log")
    ran = fail(tmp_path / "home", "--json")
    assert (ran.code, ran.document["error"]["code"]) == (1, "internal")
    assert ran.err.count("no log file") == 1
    assert "Traceback" not in ran.err
    ran = User(tmp_path / "home", NO_DAEMON).run("config", "--json")
    assert (ran.code, ran.document["ok"]) == (0, True)


def test_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    """After genesis and a question every file of the home is 0600 and every folder 0700, whatever the umask was."""
    with emulator("--model", "llama3.1:8b-instruct-q4_K_M", "--model", "all-minilm:latest") as url:
        user = User(tmp_path / "home", url)
        ran = [user.run("genesis"), user.run("ask", "--effort", "reflex", "Why do I worry?")]
    assert [each.code for each in ran] == [0, 0], ran
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (user.home, *user.home.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {path: oct(mode) for path, mode in modes.items() if path.is_file() and mode != 0o600} == {}
    names = {path.name for path in modes}
    assert {"live_image.fs", "journal.fs", "mind.toml", "batos.log", "modelfiles"} <= names


def test_a_terminal_without_the_letters(tmp_path: Path) -> None:
    """A stream of ASCII escapes what it lacks: names that are not known are told all the same."""
    user = User(tmp_path / "home", NO_DAEMON)
    for arguments in (("missions", "--höme"), ("cancel", "mission-ünknown"), ("cancel", "--json", "ünknown")):
        ran = user.process(*arguments, environ={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"})
        assert ran.code == 2, ran
        assert "Traceback" not in ran.err
        assert "\\xf" in ran.err or "\\u00f" in ran.out
