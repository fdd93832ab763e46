"""Sentences: verbatim slices that miss only blanks and list marks, and no end inside an abbreviation."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.memory.textual import texts

from batos.memory.segmentation import sentence_spans, whole_sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@given(text=texts)
def test_sentences_are_slices_in_order_with_no_letter_between_them(text: str) -> None:
    """Each is a slice without blanks at its ends, and between two of them stand no letters."""
    at = 0
    for start, end in sentence_spans(text):
        assert at <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        assert not any(letter.isalpha() for letter in text[at:start])
        at = end
    assert not any(letter.isalpha() for letter in text[at:])


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Hale trims the wick at eight.",
        "J. K. Rowling and George W. Bush met.",
        "It stands at St. Abbs, i.e. Lothian.",
        "See fig. 3 and no. 12 of the log.",
        "The keeper, e.g. Anna, lit it.",
        "The U.S. Army bought Apple Inc. Shares.",
        "Am 5. Mai brannte sie, im 19. Jahrhundert nicht, z.B. Anna.",
        "M. Dupont et Mme. Hale dorment.",
        "1. The first item is the wick.",
    ],
)
def test_a_point_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    """Titles, initials, abbreviations before numbers and German ordinals go on."""
    assert len(split(text)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He fought in World War I. The war ended.", ["He fought in World War I.", "The war ended."]),
        ("They live in the U.S. They work.", ["They live in the U.S.", "They work."]),
        ("No. The lamp is out.", ["No.", "The lamp is out."]),
        ("She had 12. The others had none.", ["She had 12.", "The others had none."]),
        ("# Costs\nOil is dear.", ["Costs", "Oil is dear."]),
        ("Two:\n- the wick\n- the oil\n\nBoth burn", ["Two:", "the wick", "the oil", "Both burn"]),
        ("Erste Zeile\nsetzt sich fort. Zweite!", ["Erste Zeile\nsetzt sich fort.", "Zweite!"]),
        ("灯台は1900年に建てられた。油で燃えた。", ["灯台は1900年に建てられた。", "油で燃えた。"]),
        ("متى بُنيت المنارة؟ بُنيت عام 1900.", ["متى بُنيت المنارة؟", "بُنيت عام 1900."]),
        ("दीपक जलता है। वह बुझा।", ["दीपक जलता है।", "वह बुझा।"]),
        ("He said “It burns.” She left.", ["He said “It burns.”", "She left."]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    """Marks of many scripts, blank lines, items and headings end a sentence."""
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "until", "whole"),
    [
        ("One. Two. Three", 99, "One. Two."),
        ("One. Two. Three.", 9, "One. Two."),
        ("One. Two. Three.", 11, "One. Two. Three."),
        ("One. And then - and then", 99, "One."),
        ("no end of it", 99, ""),
        ("", 0, ""),
        ("\n Why? \u201cNo.\u201d The", 99, "Why? \u201cNo.\u201d"),
        ("一。二。三", 99, "一。二。"),
        ("It is:\n\n- one\n- two\n", 99, ""),
    ],
)
def test_whole_sentences_that_begin_before_a_place(text: str, until: int, whole: str) -> None:
    """As far as the last that has its mark; a line without a mark is none."""
    assert whole_sentences(text, until) == whole
