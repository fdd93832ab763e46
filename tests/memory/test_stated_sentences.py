"""Statements in a question: what a person says of the world, and neither what they ask nor what they want done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.stated_sentences import statements_of


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("My cat is called Miso. What may she eat?", ["My cat is called Miso."]),
        ("Meine Katze heißt Miso. Was darf sie fressen?", ["Meine Katze heißt Miso."]),
        ("We moved to Porto last spring. Write a letter to Anna.", ["We moved to Porto last spring."]),
        ("Please summarise this file.", []),
        ("¿Dónde está el faro?", []),
        ("我的猫叫米索。它可以吃什么？", ["我的猫叫米索。"]),
        ("Who keeps the lamp? (I asked it before.)", []),
        ("Thanks!", []),
        ("", []),
    ],
)
def test_what_is_stated_is_kept_and_what_is_asked_is_not(text: str, stated: list[str]) -> None:
    """In several languages."""
    assert [each.strip() for each in statements_of(text)] == stated


@given(st.text(max_size=200))
def test_a_statement_stands_in_the_text(text: str) -> None:
    """Word for word, and no text is an error."""
    assert all(each in text for each in statements_of(text))
