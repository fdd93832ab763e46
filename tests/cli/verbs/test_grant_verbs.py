"""`batos grants add mcp`: the command is shown before it runs, and nobody who cannot answer is taken for a yes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from batos.cli.entry import batos

SERVER = str(Path(__file__).parents[3] / "bench" / "hostile_server_side.py")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own."""
    monkeypatch.setenv("BATOS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_program_is_shown_and_not_run_where_nobody_can_answer(home: Path) -> None:
    """With the words that it runs with the person's rights; nothing is granted."""
    told = CliRunner().invoke(batos, ["grants", "add", "mcp", "tides", "--", sys.executable, SERVER, "modern"])
    assert told.exit_code == 2
    assert "runs with your rights" in told.output
    assert f"{sys.executable} {SERVER} modern" in told.output
    assert "give --yes" in told.output


@pytest.mark.parametrize(
    ("args", "why"),
    [(["mcp", "tides"], "Give the server"), (["folder", ".", "--yes"], "--yes is for mcp")],
)
def test_what_does_not_fit_is_a_usage_error(home: Path, args: list[str], why: str) -> None:
    """With the form that does."""
    told = CliRunner().invoke(batos, ["grants", "add", *args])
    assert (told.exit_code, why in told.output) == (2, True), told.output
