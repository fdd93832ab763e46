"""The progress of remembering, for a terminal, a log and a program."""

from __future__ import annotations

import io
import json
from typing import Any

from batos.cli.render.memory_texts import RememberProgress
from batos.terminal.console import Console


class _HeardProgress:
    """A progress whose clock is set by hand, and what it wrote."""

    def __init__(self, *, as_json: bool = False, is_terminal: bool = False, quiet: bool = False) -> None:
        self.now = 0.0
        self.out, self.err = io.StringIO(), io.StringIO()
        console = Console(self.out, self.err, as_json, is_terminal)
        self.progress = RememberProgress(console, quiet=quiet, clock=lambda: self.now)

    def work(self) -> None:
        """Two files of four, then vectors."""
        self.progress.expect(4, 4_000)
        for _ in range(2):
            self.now += 20
            self.progress.advance(1, 1_000)
        self.progress.tell_document({"document": "d-1", "state": "new"})
        self.progress.tell_skipped({"source": "/a", "reason": "it is empty"})
        for missing in (30, 10):
            self.now += 20
            self.progress.tell_missing(missing)

    def events(self) -> list[dict[str, Any]]:
        """The lines for a program."""
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def test_a_terminal_has_one_line() -> None:
    """It is drawn anew, and tells the share, the rate, and then the vectors."""
    told = _HeardProgress(is_terminal=True)
    told.work()
    shown = told.err.getvalue()
    assert "[############            ] 2 of 4 files, 2.0 KiB of 3.9 KiB, 50 B/s" in shown
    assert "20 of 30 new parts have a vector" in shown
    assert told.out.getvalue() == ""


def test_a_log_gets_a_note_now_and_then() -> None:
    """None for what takes less than some seconds, and none where nobody wants one."""
    told = _HeardProgress()
    told.work()
    assert len(told.err.getvalue().splitlines()) == 4
    quiet = _HeardProgress(quiet=True)
    quiet.work()
    quick = _HeardProgress()
    quick.progress.expect(4, 4_000)
    quick.progress.advance(4, 4_000)
    assert quiet.err.getvalue() == quick.err.getvalue() == ""


def test_a_program_gets_events() -> None:
    """Each document and each skipped file is one; progress is told once a second at most."""
    told = _HeardProgress(as_json=True)
    told.work()
    events = told.events()
    assert [each["event"] for each in events] == [
        "remember.progress", "remember.progress", "remember.progress", "remember.document", "remember.skipped",
        "remember.vectors", "remember.vectors",
    ]  # fmt: skip
    assert (events[2]["files"], events[2]["of_files"], events[2]["bytes_per_second"]) == (2, 4, 50)
    assert told.err.getvalue() == ""


def test_an_interruption_tells_what_stands() -> None:
    """And that the same command goes on."""
    told = _HeardProgress()
    told.work()
    told.progress.tell_interruption()
    assert "2 files done" in told.err.getvalue()
