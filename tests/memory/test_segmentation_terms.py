"""Words and terms of a text, whatever its script."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.memory.textual import texts

from batos.memory.segmentation import terms, words


@given(text=texts)
def test_words_are_folded_and_terms_cover_scripts_without_blanks(text: str) -> None:
    """Every term is a word or a pair of characters of one; a word without blanks inside is found by its pairs."""
    found = words(text)
    assert all(word == word.casefold() for word in found if word.isascii())
    assert all(any(term in word for word in found) for term in terms(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Straße Ⅷ", ["strasse", "viii"]),
        ("कैसे करूँ", ["कैसे", "करूँ"]),
        ("灯塔的灯", ["灯塔的灯"]),
        ("e\u0301te\u0301", ["été"]),
        ("", []),
    ],
)
def test_words_of_several_scripts(text: str, found: list[str]) -> None:
    """Compatible forms are one, and marks of Indic scripts do not cut a word."""
    assert words(text) == found
