"""The recogniser of kinds, on questions that other people than its builder wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batos.minds.question_kind import kind_of, prescribes_form

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.mark.parametrize(("name", "kinds", "facts"), [("dev", 0.98, 0.98), ("a", 0.6, 0.86), ("b", 0.58, 0.85)])
def test_kinds_are_recognised_by_rule(name: str, kinds: float, facts: float) -> None:
    """The first set was seen when the rules were written, the others were not: floors a little below what was found."""
    lines = (DATA / f"question-forms-{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = [(kind_of(row["text"]), row["kind"]) for row in rows]
    assert sum(kind == wanted for kind, wanted in found) >= kinds * len(rows)
    assert sum((kind == "fact") == (wanted == "fact") for kind, wanted in found) >= facts * len(rows)


def test_a_question_that_says_its_form_is_no_plain_fact() -> None:
    """No form of ours is asked for then."""
    assert prescribes_form("In exactly two words: who built it?")
    assert not prescribes_form("Who built it?")
    assert kind_of("In exactly two words: who built it?") != "fact"
