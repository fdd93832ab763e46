"""Assertions: a subject with a value that is a number or a name, read fast from any text, and what takes its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import LARGER, growth
from tests.memory.growing import MOST as MOST_GROWTH

from batos.memory.claims.restatements import LONGEST_SENTENCE, MOST, Assertion, assertions_of


def read(text: str) -> Assertion:
    """The only assertion of a text."""
    (found,) = assertions_of(text)
    return found


@pytest.mark.parametrize(
    ("text", "subject", "value"),
    [
        ("The launch of Orion is on 18 March.", ("launch", "orion"), ("18", "march")),
        ("Das Treffen ist jetzt um 10.", ("treffe",), ("10",)),
        ("La réunion est à Lyon.", ("réunio",), ("lyon",)),
        ("El precio es 9.", ("precio",), ("9",)),
        ("The office moved to Ulm.", ("office",), ("ulm",)),
    ],
)
def test_a_value_is_read_with_its_subject(text: str, subject: tuple[str, ...], value: tuple[str, ...]) -> None:
    """In the languages that have a table, with the span of the sentence."""
    found = read(f"Hello there. {text}")
    assert (found.subject, found.value) == (subject, value)
    assert f"Hello there. {text}"[found.start : found.end] == text


@pytest.mark.parametrize(
    "text",
    ["The lamp is not in Ulm.", "Is the lamp in Ulm?", "The lamp is red.", "It is 9.", "The price was 9 euros.", "9."],
)
def test_other_sentences_assert_nothing(text: str) -> None:
    """What denies, asks, has no value that can be compared, or no subject."""
    assert list(assertions_of(text)) == []


@pytest.mark.parametrize(
    ("earlier", "later", "gives_way"),
    [
        ("The keeper is Maro.", "The keeper is Anna.", True),
        ("My sister is Mia.", "My sister is Anna.", False),
        ("The price is 9 euros.", "The price is 12 euros.", True),
        ("The price is 9 euros.", "The price is 12 francs.", False),
        ("The keeper is Maro.", "The keeper is 40.", False),
        ("Room 4 is 9 m wide.", "Room 5 is 12 m wide.", False),
    ],
)
def test_another_value_of_the_same_kind_takes_the_place(earlier: str, later: str, gives_way: bool) -> None:
    """Of the same subject; by a name only where there is one such thing."""
    assert read(earlier).gives_way(read(later)) is gives_way


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Each assertion stands in the text."""
    assert all(0 <= each.start < each.end <= len(text) for each in assertions_of(text))


def test_hostile_text_is_read_fast() -> None:
    """No text makes the pattern go back and forth, and of many assertions some are kept."""
    for before, repeated, behind in (("a is ", "b ", ""), ("", "is ", ""), ("", "x", ""), ("", "a ", "is\n9")):

        def read_all(size: int, parts: tuple[str, str, str] = (before, repeated, behind)) -> None:
            text = parts[0] + parts[1] * (size // len(parts[1])) + parts[2]
            list(assertions_of(200 * f"{text}\n\n"))

        assert growth(read_all, (LONGEST_SENTENCE - 9) // LARGER) < MOST_GROWTH, repeated
    assert len(list(assertions_of("The lamp is 9 m. " * 99))) == MOST
