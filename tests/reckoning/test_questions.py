"""Questions in nine languages to tables and dates: the result, nothing, or the columns that fit equally."""

from __future__ import annotations

import pytest
from tests.reckoning.asking import asked, gives_wrong, holds


@pytest.mark.parametrize("name", ["given", "kept_back", "fresh", "messy", "last", "dates", "more_dates"])
def test_no_question_gets_a_wrong_result(name: str) -> None:
    """A result that is given is the right one; a question that asks for no computation gets none."""
    assert [(table, question) for table, question, expected, found in asked(name) if gives_wrong(expected, found)] == []


@pytest.mark.parametrize(
    ("name", "least"),
    [("given", 128), ("kept_back", 102), ("fresh", 64), ("messy", 73), ("last", 42), ("dates", 53), ("more_dates", 45)],
)
def test_questions_are_answered(name: str, least: int) -> None:
    """As many questions as docs/decisions/0085 says get what is expected."""
    assert sum(holds(expected, found) for _, _, expected, found in asked(name)) >= least
