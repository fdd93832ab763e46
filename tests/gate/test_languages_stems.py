"""Stems: what two texts share, whatever the ending, the grouping of digits or the script."""

from __future__ import annotations

import pytest

from batos.gate.languages import placed_stems, stems


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("automated lamps", "the automatic lamp", "English"),
        ("trimmed, carried and filled", "trims carries fills", "English"),
        ("1,000 ships", "1000 ships", "English"),
        ("1.000 Schiffe", "1 000 Schiff", "German"),
        ("seven keepers", "7 keeper", "English"),
        ("siebzehn Wärter", "17 Wärter", "German"),
        ("l'église", "une église", "French"),
        ("المنارة", "منارة", None),
        ("والحارس", "الحَارِس", None),
        ("灯台守", "灯台守", "Japanese"),
        ("Ｌａｍｐ", "lamp", "English"),
    ],
)
def test_the_same_words_have_the_same_stems(one: str, other: str, language: str | None) -> None:
    """Endings, articles that are written together, groups of digits and number words do not part them."""
    assert stems(one, language) == stems(other, language)


def test_only_the_small_words_of_the_own_language_are_left_out() -> None:
    """German `war` is a war in English, and `die` is to die."""
    assert stems("The war was long.", "English") == {"war", "long"}
    assert stems("Der Krieg war lang.", "German") == {"krieg", "lang"}
    assert "war" in stems("The war was long.", None)


def test_numbers_are_one_stem() -> None:
    """A number is one stem, a decimal keeps its point, and a date has three."""
    assert stems("2,500 and 2.5", "English") == {"2500", "2.5"}
    assert stems("12.05.1961", "German") == {"12", "5", "1961"}


def test_a_stem_knows_its_word() -> None:
    """The place is that of the word in the text as it is."""
    text = "The Ｌamps, 1,000 of them: 灯台守"
    assert [text[each.start : each.end] for each in placed_stems(text, "English")] == [
        "Ｌamps",
        "1,000",
        "灯台",
        "台守",
    ]
