"""The bench that chose the representation still measures all of it; its speed is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "slots.py"


def test_the_bench_reports_every_candidate(tmp_path: Path) -> None:
    """A quick run ends with one JSON line that holds every figure of every candidate, and writes the same to a file."""
    written = tmp_path / "slots.json"
    done = subprocess.run(
        [sys.executable, str(BENCH), "--quick", "--json", str(written)], capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(written.read_text()) == seen
    assert set(seen) == {"objects", "chosen", "representations", "machine", "goals"}
    assert set(seen["representations"]) == {"state", "dict", "mapping", "btree", "uvm_object"}
    for figures in seen["representations"].values():
        assert {"bytes_per_object", "load_us", "lookup_ns_1", "lookup_ns_5", "lookup_ns_20"} <= set(figures)
        assert all(value > 0 for value in figures.values())
    assert all(set(goal) == {"name", "value", "goal", "ok"} for goal in seen["goals"])


def test_what_was_chosen_is_the_smallest() -> None:
    """Bytes do not depend on the machine's speed: the chosen representation has the fewest, in one record."""
    done = subprocess.run([sys.executable, str(BENCH), "--quick"], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    sizes = {name: row["bytes_per_object"] for name, row in seen["representations"].items() if name != "uvm_object"}
    assert min(sizes, key=sizes.__getitem__) == seen["chosen"]
    assert seen["representations"]["uvm_object"]["records_per_object"] == 1
