"""The bench that chose the representation still measures all of it; its speed is nobody's business here."""

from __future__ import annotations

import json
from typing import Any

import pytest

import slots


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a quick run found."""
    written = tmp_path_factory.mktemp("slots") / "slots.json"
    slots.main(["--quick", "--json", str(written)])
    found: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return found


def test_the_bench_reports_every_candidate(seen: dict[str, Any]) -> None:
    """A quick run ends with every figure of every candidate (tests/bench looks at its last line and its file)."""
    assert set(seen) == {"objects", "chosen", "representations", "machine", "goals"}
    assert set(seen["representations"]) == {"state", "dict", "mapping", "btree", "uvm_object"}
    for figures in seen["representations"].values():
        assert {"bytes_per_object", "load_us", "lookup_ns_1", "lookup_ns_5", "lookup_ns_20"} <= set(figures)
        assert all(value > 0 for value in figures.values())
    assert all(set(goal) == {"name", "value", "goal", "ok"} for goal in seen["goals"])


def test_what_was_chosen_is_the_smallest(seen: dict[str, Any]) -> None:
    """Bytes do not depend on the machine's speed: the chosen representation has the fewest, in one record."""
    sizes = {name: row["bytes_per_object"] for name, row in seen["representations"].items() if name != "uvm_object"}
    assert min(sizes, key=sizes.__getitem__) == seen["chosen"]
    assert seen["representations"]["uvm_object"]["records_per_object"] == 1
