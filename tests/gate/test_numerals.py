"""Numbers in words: several languages, composed ones, and Chinese numerals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate import numerals


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Twenty-seven of them", 27),
        ("siebenundzwanzig Stufen", 27),
        ("vingt-sept marches", 27),
        ("veintisiete", 27),
        ("treinta y siete escalones", 37),
        ("ventotto gradini", 28),
        ("zevenentwintig treden", 27),
        ("tweeëntwintig", 22),
        ("a twelve-step way", 12),
        ("half of it", 50),
        ("¾ of it", 75),
        ("八十六级", 86),
        ("一千二百年", 1200),
        ("二〇二三年", 2023),
        ("三万五千", 35_000),
    ],
)
def test_numbers_in_words_have_a_value(text: str, value: int) -> None:
    """From ten to ninety-nine, composed as each language does it."""
    assert Decimal(value) in numerals.numbers_in_words(text)


def test_only_the_answers_own_language_states_numbers() -> None:
    """`once` is eleven in Spanish and no number in English, `elf` is eleven in German."""
    assert numerals.number_words("An elf came once with twenty-seven lamps.", "English") == {
        "twenty-seven": Decimal(27)
    }
    assert numerals.number_words("Vinieron once.", "Spanish") == {"once": Decimal(11)}
    assert numerals.number_words("Es kamen elf.", "Polish") == {}


@given(text=st.text(max_size=100) | st.text("〇一二十百千万亿零两", max_size=30))
def test_any_text_is_read_without_error(text: str) -> None:
    """Whatever is written."""
    assert numerals.numbers_in_words(text) == numerals.numbers_in_words(text)
