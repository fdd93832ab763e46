"""For the tests that need a real Ollama: which model they may use, and how many of them ran."""

from __future__ import annotations

import os

import pytest

from batos.inference.ollama.bridge import Bridge

#: What a person names it by; else it is found.
NAMED = "BATOS_LIVE_MODEL"
#: What the shipped codex asks of a model, in tokens.
WINDOW = 4096


async def found_model(bridge: Bridge, named: str = "", *, window: int = WINDOW, tensor: str = "") -> str:
    """The model that is named, else the smallest one there that writes, was trained for this window, has this tensor,
    and is neither ours nor a cloud's.

    The test fails where there is none: a suite that ran nothing must not look like one that passed.
    """
    if named := named or os.environ.get(NAMED, ""):
        return named
    for row in sorted(await bridge.list(), key=lambda each: each.size):
        ours, away = row.name.startswith("batos-"), row.name.endswith("cloud")
        if ours or away:
            continue
        card = await bridge.show(row.name, verbose=True)
        trained = [int(size) for key, size in card.info.items() if key.endswith(".context_length")]
        fits = max(trained, default=0) >= window and (not tensor or tensor in card.tensors)
        if fits and "completion" in card.capabilities:
            return row.name
    pytest.fail(
        f"the daemon has no model that writes: `ollama pull smollm2:135m`, or name one in {NAMED}", pytrace=False
    )


class Count:
    """A plugin of the tests that need a real Ollama: it says how many ran, and none is a failure."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.ran: set[str] = set()
        self.left: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by what came of it."""
        if report.when == "call" and not report.skipped:
            self.ran.add(report.nodeid)
        elif report.skipped:
            self.left.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail where nothing ran."""
        if not self.ran and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say it in one line."""
        model = os.environ.get(NAMED) or "the smallest that will do"
        terminalreporter.write_line(
            f"live: {len(self.ran)} ran and {len(self.left)} were left out, on {self.url} with {model}"
        )
