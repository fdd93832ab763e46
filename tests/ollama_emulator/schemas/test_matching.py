"""Patterns of schemas: looked for in a time that grows with the text, found where Python's own matcher finds them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollama_emulator.schemas import matching


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5000 + "b"),
        ("(x+x+)+y", "x" * 5000),
        ("^(a|a)*$", "a" * 5000 + "b"),
        ("^(a|aa)+$", "a" * 5000 + "b"),
        ("(.*a){20}", "b" * 5000),
        ("^((a{50}){50}){50}$", "a" * 5000),
    ],
)
def test_patterns_that_blow_up_a_backtracking_matcher_are_not_found_in_time(pattern: str, text: str) -> None:
    """Python's own would take longer than the universe has."""
    assert not matching.found(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^\d{4}-\d\d$", "2024-01", True),
        (r"^\d{4}-\d\d$", "2024-1", False),
        (r"\bab\b", "x ab y", True),
        (r"\Bab", "xab", True),
        ("^$", "", True),
        ("a$", "a\n", True),
        (r"a\Z", "a\n", False),
        ("[^a-c]x", "ax dx", True),
        ("a{2,3}?b|c", "aab", True),
        (r"\w+@\w+\.\w+", "me@example.org", True),
        ("(?=a)a", "a", False),
        (r"(a)\1", "aa", False),
        ("(?i)A", "a", False),
        ("(?i:A)", "a", False),
    ],
)
def test_a_pattern_is_found_where_it_stands(pattern: str, text: str, found: bool) -> None:
    """What looks about, refers back or has flags is not understood, and found nowhere."""
    assert matching.found(pattern, text) is found


_PATTERN = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", r"\d"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        inner.map(lambda one: f"(?:{one})*"),
        inner.map(lambda one: f"(?:{one})?"),
        inner.map(lambda one: f"({one}){{1,2}}"),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
    ),
    max_leaves=6,
)


@given(_PATTERN, st.text("ab1\n", max_size=8))
def test_it_finds_what_pythons_matcher_finds(pattern: str, text: str) -> None:
    """On short texts, where that one can be waited for."""
    assert matching.found(pattern, text) == (re.search(pattern, text) is not None)
