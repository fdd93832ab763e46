"""A process that waits for an image says so beside it, to whoever has it only to tidy up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.waiting import HANG

from batos.cli.doors.waiting_notes import announce_wait, is_wanted, wait_until_wanted

WAITS = """
import sys, pathlib
from batos.cli.doors.waiting_notes import announce_wait
with announce_wait(pathlib.Path(sys.argv[1])):
    print("waits", flush=True)
    sys.stdin.read()
"""


def test_who_waits_is_heard_until_it_ends(tmp_path: Path) -> None:
    """Another process's note counts, one's own does not, and a killed one's is removed."""
    image = tmp_path / "image.fs"
    with announce_wait(image), announce_wait(None):
        assert not is_wanted(image)
    for end in ("close", "kill"):
        with subprocess.Popen(
            [sys.executable, "-c", WAITS, str(image)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:  # its stderr is this process's, and told with a failure
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "waits\n", f"it ended with {other.wait(HANG)}"
            asyncio.run(wait_until_wanted(image))
            other.kill() if end == "kill" else other.stdin.close()
            other.wait(HANG)
            assert not is_wanted(image)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_note_of_a_process_counts_for_nothing(tmp_path: Path) -> None:
    """A name without a number, and a number that another process has by now."""
    image = tmp_path / "image.fs"
    for name, text in (("x", ""), ("1", "born at another time")):
        Path(f"{image}.wanted-{name}").write_text(text)
    assert not is_wanted(image)
    assert list(tmp_path.iterdir()) == []
