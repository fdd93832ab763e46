"""The cell looked at by the doctor."""

from __future__ import annotations

from pathlib import Path

from batos.cli.doctor import doctor


async def test_a_cell_that_runs() -> None:
    """Nothing is wrong where a method runs."""
    found = await doctor.check_cell()
    assert (found.id, found.ok, found.remedy) == ("cell.runs", True, "")


async def test_a_cell_that_is_missing(tmp_path: Path) -> None:
    """Without the interpreter's binary it says so, with a remedy."""
    found = await doctor.check_cell(tmp_path / "monty")
    assert (found.id, found.ok) == ("cell.runs", False)
    assert "monty" in found.what
    assert "pip install" in found.remedy
