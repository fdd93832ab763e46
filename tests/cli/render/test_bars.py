"""Several things that grow at once: bars on a terminal, lines elsewhere, events for a program, nothing when quiet."""

from __future__ import annotations

import io
import json
import re

import pytest

from batos.cli.render.bars import Bar, Bars, Growth
from batos.terminal.console import Console

MIB = 2**20


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def bars(*, as_json: bool = False, colour: bool = False, quiet: bool = False) -> tuple[Bars, io.StringIO, Clock]:
    """Bars with the stream on which they tell and their clock."""
    out, err, clock = io.StringIO(), io.StringIO(), Clock()
    told = Bars(Console(out, err, as_json, colour), quiet=quiet, clock=clock)
    return told, out if as_json else err, clock


def screen(drawn: str) -> list[str]:
    """What stands on a terminal after everything that was written to it."""
    lines: list[str] = [""]
    for piece in re.split(r"(\x1b\[\d*[AJm]|\r|\n)", drawn):
        if piece == "\n":
            lines.append("")
        elif piece.endswith("A") and piece.startswith("\x1b"):
            del lines[len(lines) - int(piece[2:-1]) :]
            lines[-1] = ""
        elif not piece.startswith(("\x1b", "\r")):
            lines[-1] += piece
    return [line for line in lines if line]


def test_two_pulls_have_a_line_each() -> None:
    """On a terminal each pull has its own line, redrawn in place, with bytes, rate and the time that is left."""
    told, err, clock = bars(colour=True)
    for second in range(4):
        clock.now = 100.0 + second
        told.show_progress(Growth("pull a", "pulling 0a0b", second * MIB, 10 * MIB))
        clock.now += 0.2
        told.show_progress(Growth("pull b", "pulling 0c0d", second * 2 * MIB, 100 * MIB))
    assert screen(err.getvalue()) == [
        "pull a  [######..............]  3.0 MiB of 10.0 MiB, 1.0 MiB/s, 7 s left",
        "pull b  [#...................]  6.0 MiB of 100.0 MiB, 2.0 MiB/s, 47 s left",
    ]


def test_what_is_done_leaves_a_line_above_the_bars() -> None:
    """A step that ends is told in a line that stays; the bars of the others go on below it, and go at the end."""
    told, err, _ = bars(colour=True)
    told.show_progress(Growth("pull a", "pulling 0a0b", 5, 10))
    told.show_progress(Growth("pull b", "pulling 0c0d", 5, 10))
    told.show_progress(Growth("pull a", "success", 10, 10))
    assert screen(err.getvalue()) == ["  pull a: done, 10 B", "pull b  [##########..........]  5 B of 10 B"]
    told.close()
    assert screen(err.getvalue()) == ["  pull a: done, 10 B"]


def test_bars_are_drawn_at_a_pace() -> None:
    """However many lines the daemon sends, a terminal is written to ten times a second at most."""
    told, err, clock = bars(colour=True)
    for number in range(1_000):
        clock.now = 100.0 + number / 1_000
        told.show_progress(Growth("pull a", "pulling 0a0b", number, 1_000))
    assert 5 <= err.getvalue().count("pull a") <= 11


def test_lines_where_nothing_moves() -> None:
    """Elsewhere a pull is told at each tenth, and every line stays; no control character is written."""
    told, err, clock = bars()
    told.show_progress(Growth("pull a", "pulling manifest"))
    for number in range(101):
        clock.now += 1
        told.show_progress(Growth("pull a", "pulling 0a0b", number, 100))
    told.show_progress(Growth("pull a", "success", 100, 100))
    lines = err.getvalue().splitlines()
    assert len(lines) == 12
    assert lines[0] == "  pull a: pulling manifest"
    assert lines[1] == "  pull a  [##..................]  10 B of 100 B, 1 B/s, 1 min 30 s left"
    assert lines[-1] == "  pull a: done, 100 B"
    assert "\x1b" not in err.getvalue()


def test_quiet_says_nothing() -> None:
    """With --quiet nothing is told of progress."""
    told, err, _ = bars(colour=True, quiet=True)
    told.on_event("genesis.step", {"step": "create b", "status": "success"})
    told.on_event("erasure.step", {"phase": "search", "completed": 5, "total": 10})
    told.close()
    assert err.getvalue() == ""


def test_an_erasure_is_one_bar_with_its_phases() -> None:
    """The share is that of all bytes, and each phase is told once."""
    told, err, _ = bars(colour=False)
    for phase, completed in (("plan", 0), ("plan", 4 * MIB), ("history", 6 * MIB)):
        told.on_event("erasure.step", {"phase": phase, "completed": completed, "total": 10 * MIB})
    assert [line.split() for line in err.getvalue().splitlines()] == [
        ["erase:", "plan"],
        ["erase", "[########............]", "4.0", "MiB", "of", "10.0", "MiB"],
        ["erase", "[############........]", "6.0", "MiB", "of", "10.0", "MiB"],
        ["erase:", "history"],
    ]


def test_a_program_hears_every_progress() -> None:
    """With --json each progress is an event with its bytes."""
    told, out, _ = bars(as_json=True)
    told.on_event("genesis.step", {"step": "pull a", "status": "pulling 0a0b", "completed": 5, "total": 10})
    assert json.loads(out.getvalue()) == {
        "v": 1,
        "event": "genesis.step",
        "step": "pull a",
        "status": "pulling 0a0b",
        "completed": 5,
        "total": 10,
    }


def test_a_rate_is_that_of_the_last_seconds() -> None:
    """What was there when a pull was taken up counts for nothing; one that stands still says so."""
    bar = Bar("pull a")
    bar.update(Growth("pull a", "pulling", 50 * MIB, 100 * MIB), 0.0)
    assert "left" not in bar.line()
    for second in range(1, 11):
        bar.update(Growth("pull a", "pulling", (50 + second) * MIB, 100 * MIB), float(second))
    assert bar.rate == MIB
    for second in range(11, 20):
        bar.update(Growth("pull a", "pulling", 60 * MIB, 100 * MIB), float(second))
    assert bar.rate == 0
    assert bar.line().endswith("60.0 MiB of 100.0 MiB, standing still")


def test_a_burst_has_no_rate() -> None:
    """Lines that come in one burst, as of what was there already, make no rate of gibibytes a second."""
    bar = Bar("pull a")
    bar.update(Growth("pull a", "pulling", 0, 100 * MIB), 0.0)
    bar.update(Growth("pull a", "pulling", 50 * MIB, 100 * MIB), 0.01)
    assert bar.rate is None
    assert bar.line() == "pull a  [##########..........]  50.0 MiB of 100.0 MiB"


def test_a_bar_on_a_narrow_terminal() -> None:
    """How much is there and how long it takes is read on any width: the bar and the rate give way."""
    bar = Bar("pull llama3.1:8b-instruct-q4_K_M")
    for second in range(3):
        bar.update(Growth("pull a", "pulling", second * 230 * MIB, 4_692 * MIB), float(second))
    lines = {width: bar.line(width) for width in range(20, 121)}
    assert all(len(line) <= width for width, line in lines.items() if width >= 50)
    assert all("18 s left" in line for line in lines.values())
    assert lines[79].endswith("[..........]  460.0 MiB of 4.6 GiB, 18 s left")
    assert lines[110] == bar.line()
    assert lines[32].startswith("  9 %, 18 s left")


def test_bars_stand_below_each_other() -> None:
    """Names are as wide as the longest, so that the bars begin in one column."""
    told, err, _ = bars(colour=True)
    told.show_progress(Growth("pull llama", "pulling 0a0b", 5, 10))
    told.show_progress(Growth("pull b", "pulling 0c0d", 5, 10))
    told.show_progress(Growth("create c", "converting adapter"))
    drawn = [line for line in screen(err.getvalue()) if "[" in line]
    assert {line.index("[") for line in drawn} == {12}


def test_a_step_without_bytes_is_told_by_its_status() -> None:
    """A model that is made has no bytes; layers that are named by their digest and what is quick are no news."""
    told, err, _ = bars()
    for status in ("converting adapter", "using existing layer sha256:0a0b", "writing manifest", "success"):
        told.show_progress(Growth("create batos-robin:0a", status))
    assert err.getvalue().splitlines() == [
        "  create batos-robin:0a: converting adapter",
        "  create batos-robin:0a: done",
    ]


@pytest.mark.parametrize("as_json", [False, True])
def test_quiet_tells_nobody(as_json: bool) -> None:
    """With --quiet neither people nor programs are told of steps: only the result is written."""
    told, said, _ = bars(quiet=True, as_json=as_json)
    told.on_event("genesis.step", {"step": "pull a", "status": "pulling", "completed": 5, "total": 10})
    told.on_event("genesis.step", {"step": "pull a", "status": "success"})
    assert said.getvalue() == ""
