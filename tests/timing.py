"""The order of the tests, files with long ones first, and the table at the end that says where the time went."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

#: Seconds of the longest test of each file that has one of a second or more; `--write-times` writes the file anew.
TABLE = Path(__file__).with_name("times.json")
#: A test that takes as long as this, in seconds, has its file in the table.
LONG = 1.0
#: The property of a test's report that names a slow callback of its event loop.
SLOW_CALLBACK = "slow_callback"


def read_table(path: Path = TABLE) -> dict[str, float]:
    """The seconds of the longest test by file, {} where there is no table."""
    if not path.exists():
        return {}
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return found


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("::")[0]


def folder_of(nodeid: str) -> str:
    """The folder of a test, at most two deep: the row of the table that its time is counted in."""
    parents = file_of(nodeid).split("/")[:-1]
    return "/".join(parents[:2]) or "."


@dataclass(slots=True)
class Row:
    """The tests of one folder."""

    items: int = 0
    cases: int = 0
    seconds: float = 0.0


class Timing:
    """A plugin that orders the tests by a table of times, and prints the time of each folder at the end.

    The table is of files, since the fixtures of a module are made once as long as its tests follow each other. A
    worker that runs out of tests takes the last ones of another: these are short when the long ones come first.
    """

    def __init__(self, table: Mapping[str, float], write_to: Path | None = None) -> None:
        self.table = table
        self.write_to = write_to
        self.rows: defaultdict[str, Row] = defaultdict(Row)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.slow: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put files with long tests first, the longest before all; other files stay in their order."""
        items.sort(key=lambda item: -self.table.get(file_of(item.nodeid), 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test to its folder; a case inside a test is counted, its time is the test's."""
        row = self.rows[folder_of(report.nodeid)]
        if isinstance(report, pytest.SubtestReport):
            row.cases += 1
            return
        row.items += report.when == "setup"
        if report.when == "teardown":
            self.slow += [f"{each}  {report.nodeid}" for name, each in report.user_properties if name == SLOW_CALLBACK]
        row.seconds += report.duration
        self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a row for each folder, the one that took longest first, unless a single folder ran."""
        if self.write_to is not None:
            self.write()
        if self.slow:
            terminalreporter.section("callbacks that held their event loop for long, which fails nothing")
            for each in self.slow:
                terminalreporter.write_line(str(each))
        if len(self.rows) < 2:
            return
        terminalreporter.section("time by folder")
        terminalreporter.write_line(f"{'items':>7} {'cases':>7} {'seconds':>9}  folder")
        total = Row()
        for folder, row in sorted(self.rows.items(), key=lambda each: -each[1].seconds):
            terminalreporter.write_line(f"{row.items:>7} {row.cases or '':>7} {row.seconds:>9.1f}  {folder}")
            total = Row(total.items + row.items, total.cases + row.cases, total.seconds + row.seconds)
        terminalreporter.write_line(f"{total.items:>7} {total.cases or '':>7} {total.seconds:>9.1f}  in all workers")

    def write(self) -> None:
        """Write the table anew from this run: the longest test of each file, where that is long."""
        assert self.write_to is not None
        longest: dict[str, float] = {}
        for nodeid, seconds in self.seconds.items():
            longest[file_of(nodeid)] = max(seconds, longest.get(file_of(nodeid), 0.0))
        ordered = sorted(longest.items(), key=lambda each: (-each[1], each[0]))
        found = {name: round(seconds, 1) for name, seconds in ordered if seconds >= LONG}
        self.write_to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
