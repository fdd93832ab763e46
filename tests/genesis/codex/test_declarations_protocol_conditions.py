"""A key protocol's conditions are computed, and all must hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.genesis.codex import declarations
from batos.genesis.codex.declarations import Situation

STUCK = Situation("I\u2019m STUCK in my job, both ways.", "cycle", 3, has_evidence=False)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, False),
        ({}, False),
        ({"words": ["stuck"]}, True),
        ({"words": ["i'm stuck in"]}, True),
        ({"words": ["tuck"]}, False),
        ({"words": ["stuck"], "without": ["job"]}, False),
        ({"words": ["stuck"], "without": ["jobs"]}, True),
        ({"efforts": ["council"]}, False),
        ({"efforts": ["cycle", "council"]}, True),
        ({"min_words": 7}, True),
        ({"min_words": 8}, False),
        ({"max_words": 6}, False),
        ({"min_parts": 3}, True),
        ({"min_parts": 4}, False),
        ({"evidence": False}, True),
        ({"evidence": True}, False),
    ],
)
def test_conditions(conditions: dict[str, Any] | None, expected: bool) -> None:
    """Each condition holds as documented; without conditions nothing holds."""
    assert declarations.condition_holds(conditions, STUCK) is expected


def test_words_of_scripts_without_blanks() -> None:
    """In scripts that write no blanks a phrase is found inside a sentence."""
    assert declarations.mentions(declarations.fold("私はとても孤独です"), ["孤独"])


@given(st.text(max_size=80), st.text(min_size=1, max_size=10))
def test_any_words_are_text(query: str, phrase: str) -> None:
    """No query and no phrase is ever read as a pattern."""
    assert declarations.condition_holds({"words": [phrase]}, Situation(query, "cycle", 1, has_evidence=False)) in {
        True,
        False,
    }
