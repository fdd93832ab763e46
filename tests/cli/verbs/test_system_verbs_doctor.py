"""The verbs about the system: how a doctor's findings are told."""

from __future__ import annotations

from pathlib import Path

from tests.cli.processes import User


def test_the_doctor_counts_and_quiet_tells_what_is_wrong(tmp_path: Path) -> None:
    """The last line counts what passed and failed; with --quiet only what is wrong is told, with the same exit."""
    user = User(tmp_path / "home", "http://127.0.0.1:9")
    whole, quiet = user.run("doctor"), user.run("doctor", "--quiet")
    lines = whole.out.splitlines()
    passed, failed = (sum(line.startswith(f"  {word}") for line in lines) for word in ("ok ", "WRONG"))
    assert (whole.code, lines[-1]) == (1, f"{passed} checks passed, {failed} failed.")
    assert quiet.code == 1
    assert quiet.out.count("  WRONG  ") == failed
    assert "  ok " not in quiet.out
