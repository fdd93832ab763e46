"""The log: every line of the file is one JSON object, whoever wrote it, and stderr shows what was asked for."""

from __future__ import annotations

import io
import json
import logging
import stat
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import structlog

from batos.cli.verb_options import own_folder
from batos.protocol.errors import ConfigError
from batos.terminal import logs


@pytest.fixture
def until_end() -> Iterator[ExitStack]:
    """What a test enters is left after it."""
    with ExitStack() as stack:
        yield stack


def lines(folder: Path) -> list[dict[str, Any]]:
    """What the file says."""
    return [json.loads(line) for line in (folder / "batos.log").read_text(encoding="utf-8").splitlines()]


def failing() -> None:
    raise ValueError("broken\nover two lines")


def test_every_line_is_one_object(until_end: ExitStack, tmp_path: Path) -> None:
    """Ours, a library's, one with an exception, one with newlines, one with a value that JSON does not know."""
    until_end.enter_context(logs.configure("warning", "json", tmp_path))
    log = structlog.get_logger("batos")
    log.info("txn.commit", what="m-1", tid="tid:0x1")
    log.warning("two\nlines", path=tmp_path, text="\x1b[31m\udcff")
    theirs = logging.getLogger("ZODB.FileStorage")
    theirs.warning("index is\n%s", "stale")
    theirs.info("not worth a line")
    try:
        failing()
    except ValueError:
        log.exception("ours failed")
        theirs.exception("theirs failed")
    found = lines(tmp_path)
    assert [line["event"] for line in found] == [
        "txn.commit",
        "two\nlines",
        "index is\nstale",
        "ours failed",
        "theirs failed",
    ]
    assert all({"event", "level", "timestamp"} <= set(line) for line in found)
    assert found[2]["logger"] == "ZODB.FileStorage"
    assert all("broken" in line["exception"] for line in found[3:])


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_stderr_has_a_threshold(
    until_end: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str, shown: int
) -> None:
    """stderr shows the level that was asked for and above; the file has info and above whatever that is."""
    until_end.enter_context(logs.configure(level, "json", tmp_path))
    log = structlog.get_logger("batos")
    for name in ("debug", "info", "warning", "error"):
        getattr(log, name)(name)
    err = capsys.readouterr().err
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["debug", "info", "warning", "error"][-shown:]
    assert [line["event"] for line in lines(tmp_path)][-3:] == ["info", "warning", "error"]


@pytest.mark.parametrize(("form", "is_json"), [("json", True), ("auto", True), ("console", False)])
def test_forms(
    until_end: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, is_json: bool
) -> None:
    """`auto` is JSON where stderr is no terminal; `console` is a line for people; the file is JSON always."""
    until_end.enter_context(logs.configure("info", form, tmp_path))
    structlog.get_logger("batos").info("txn.commit", what="m-1")
    assert capsys.readouterr().err.startswith("{") == is_json
    assert lines(tmp_path)[0]["what"] == "m-1"


def test_the_file_is_rotated(until_end: ExitStack, tmp_path: Path) -> None:
    """It never grows much over 2 MB, five older ones are kept, and each is whole lines."""
    until_end.enter_context(logs.configure("error", "json", tmp_path))
    log = structlog.get_logger("batos")
    for number in range(65):
        log.info("inference.end", number=number, text="x" * 250_000)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["batos.log", *(f"batos.log.{number}" for number in range(1, 6))]
    assert all(path.stat().st_size <= 2_000_000 for path in files)
    assert all(json.loads(line)["number"] >= 0 for path in files for line in path.read_text().splitlines())
    assert lines(tmp_path)[-1]["number"] == 64


@pytest.mark.parametrize("place", ["/dev/full", "no such folder/batos.log", "/"])
def test_a_log_that_cannot_be_written_breaks_nothing(
    until_end: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """What is logged then is not in the file; a warning says so once, and whoever logs goes on."""
    (tmp_path / "batos.log").symlink_to(place)
    until_end.enter_context(logs.configure("warning", "json", tmp_path))
    for _ in range(3):
        structlog.get_logger("batos").info("txn.commit", what="m-1")
        logging.getLogger("ZODB").warning("stale")
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in said] == ["no log file"]
    assert said[0]["file"] == str(tmp_path / "batos.log")


def test_a_logs_folder_is_made_when_there_is_something_to_log(until_end: ExitStack, tmp_path: Path) -> None:
    """It is its owner's alone."""
    until_end.enter_context(logs.configure("error", "json", tmp_path / "logs"))
    structlog.get_logger("batos").info("txn.commit", what="m-1")
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700
    assert len(lines(tmp_path / "logs")) == 1


def test_an_unforeseen_error_keeps_its_traceback(
    until_end: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has it; stderr only where debug was asked for."""
    for level, shown in (("warning", False), ("debug", True)):
        until_end.enter_context(logs.configure(level, "json", tmp_path / level))
        try:
            failing()
        except ValueError as error:
            logs.fault(error, loud=False)
        assert "in failing" in lines(tmp_path / level)[0]["exception"]
        assert ("in failing" in capsys.readouterr().err) == shown


def test_a_stderr_that_cannot_be_written_breaks_nothing(until_end: ExitStack, tmp_path: Path) -> None:
    """The file has the line all the same, and whoever logged it goes on."""

    class Away(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise OSError("none")

    with redirect_stderr(Away()):
        until_end.enter_context(logs.configure("info", "json", tmp_path))
        structlog.get_logger("batos").info("txn.commit", what="m-1")
    assert lines(tmp_path)[0]["event"] == "txn.commit"


def test_what_was_configured_before_is_configured_again(tmp_path: Path) -> None:
    """Handlers, levels and structlog's processors are those of before, also where the work failed."""
    root = logging.getLogger()

    def state() -> tuple[object, ...]:
        return structlog.is_configured(), structlog.get_config(), list(root.handlers), root.level

    def working() -> None:
        assert state() != before
        failing()

    before = state()
    with pytest.raises(ValueError, match="broken"), logs.configure("debug", "json", tmp_path):
        working()
    assert state() == before
    structlog.get_logger("batos").info("txn.commit")
    assert not (tmp_path / "batos.log").exists()


def test_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    """It is made 0700 whatever the umask lets through; folders above it are as any others."""
    home = tmp_path / "above" / "home"
    for _ in range(2):
        own_folder(home)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) & 0o700 == 0o700


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    """A file in its place, or in the place of a folder above it, is an error that names the folder and a way out."""
    (tmp_path / "file").write_text("x")
    for home in (tmp_path / "file", tmp_path / "file" / "home"):
        with pytest.raises(ConfigError) as raised:
            own_folder(home)
        assert str(home) in raised.value.message
        assert raised.value.field == "home"
        assert "--home" in raised.value.remedy


def test_lines_are_taken_out_of_every_file_for_good(until_end: ExitStack, tmp_path: Path) -> None:
    """The process goes on writing the same file, and files that were rotated lose their lines too."""
    (tmp_path / "batos.log.1").write_text("old secret\nold\n", encoding="utf-8")
    until_end.enter_context(logs.configure("error", "json", tmp_path))
    for text in ("a secret", "plain"):
        structlog.get_logger("batos").info("said", text=text)
    assert logs.drop_lines(tmp_path, lambda line: "secret" not in line) == 2
    structlog.get_logger("batos").info("said", text="more")
    assert [each["text"] for each in lines(tmp_path)] == ["plain", "more"]
    assert (tmp_path / "batos.log.1").read_text(encoding="utf-8") == "old\n"
    assert logs.drop_lines_of(tmp_path / "none", lambda line: True) == 0
