"""A table of answers with the verdict that each deserves: built with, and kept back while the gate was built."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from batos.gate import checks
from batos.gate.ground import Draft, Ground
from batos.memory.evidence import Evidence
from batos.memory.passages import passages

DATA: Final = Path(__file__).parent / "data"
TODAY: Final = "2026-11-28"
#: The share of right verdicts among rows that nothing was fitted to, measured once (docs/decisions/0084).
KEPT_SHARE: Final = 0.9


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def evidence_of(name: str, document: str) -> Evidence:
    """A document of a table by its name; `@2026-11-20 text` is a text of that day, and "" is none."""
    if document.startswith("@"):
        found = passages([("note.txt", "a" * 64, document[12:])])
        return Evidence(tuple(replace(each, day=document[1:11]) for each in found))
    texts = json.loads((DATA / f"{name}-documents.json").read_text(encoding="utf-8"))
    return Evidence(passages([(document, "a" * 64, texts[document])])) if document else Evidence()


def verdict_of(name: str, row: dict[str, Any]) -> checks.GateVerdict:
    """The gate's verdict on a row."""
    ground = Ground(row["question"], evidence_of(name, row["document"]), today=TODAY, computed=row.get("computed", ""))
    return checks.judge(Draft(row["answer"], ground)).verdict


def is_right(row: dict[str, Any], state: str) -> bool:
    """Test if a state is the expected one; `quiet` is any without an alarm."""
    return state == row["expect"] or (row["expect"] == "quiet" and state != "faulty")


@pytest.mark.parametrize("row", rows("built"), ids=lambda row: f"{row['kind']}-{row['language']}")
def test_an_answer_has_the_verdict_that_it_deserves(row: dict[str, Any]) -> None:
    """Right answers raise no alarm, wrong ones do, and nothing has passed that could not be checked."""
    verdict = verdict_of("built", row)
    assert is_right(row, verdict.state), verdict


def test_the_verdicts_hold_for_answers_that_were_kept_back() -> None:
    """Other documents, other questions, other answers of the same kinds."""
    table = rows("kept")
    right = [is_right(row, verdict_of("kept", row).state) for row in table]
    assert sum(right) / len(table) >= KEPT_SHARE


def test_both_tables_have_all_kinds_of_answers_and_eight_languages() -> None:
    """Half of all rows were kept back."""
    both = {name: rows(name) for name in ("built", "kept")}
    assert len(both["built"]) + len(both["kept"]) >= 150
    assert len({row["language"] for table in both.values() for row in table}) >= 8
    for table in both.values():
        assert min(Counter(row["expect"] for row in table).values()) >= 5
