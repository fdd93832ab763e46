"""What has a form of its own is found in a question as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.minds.tools.question_forms import find_enum, find_form, find_journey, find_number


@pytest.mark.parametrize(
    ("form", "question", "found"),
    [
        ("address", "Read (https://example.org/a_b?c=d#e), please.", ["https://example.org/a_b?c=d#e"]),
        ("mail", "Write to jo.b@mill.example.", ["jo.b@mill.example"]),
        ("path", "How big is /home/ina/Bilder?", ["/home/ina/Bilder"]),
        ("path", "See https://example.org/a/b for it.", []),
        ("code", "Where are LH908, 0034-5512 and order 77031?", ["LH908", "0034-5512", "77031"]),
        ("number", "5000 yen, 22 degrees", ["5000", "22"]),
    ],
)
def test_forms(form: str, question: str, found: list[str]) -> None:
    """Each is taken without the marks of the sentence around it."""
    assert find_form(form, question) == found


@pytest.mark.parametrize(
    ("question", "value"),
    [("1,250 pounds", 1250), ("19,5 Grad", 19.5), ("2.5 tons", 2.5), ("3 or 4", None), ("", None)],
)
def test_numbers(question: str, value: float | None) -> None:
    """A point or comma before three figures joins them, before others it is a decimal one."""
    assert find_number(question) == value


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """No text breaks a form, and what is found stands in it."""
    for form in ("address", "mail", "path", "code", "number"):
        assert all(each in text for each in find_form(form, text))
    find_journey(text)
    find_number(text)


def test_values_of_an_enum_are_known_by_other_words() -> None:
    """They come in the order of the question."""
    assert find_enum(["EUR", "USD"], "Wie viel sind 20 Dollar in Euro?") == ["USD", "EUR"]
    assert find_enum(["red", "blue"], "Paint it blue.") == ["blue"]
