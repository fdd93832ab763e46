"""Marked texts: what holds as it is, the rest behind its mark on a line of its own, or left out."""

from __future__ import annotations

from batos.memory.claims.adjudication import marked_spans, marked_text
from batos.memory.records.memory_claims import ASKED, ClaimMark

TEXT = "The lamp was red. Is it blue? The lamp is green."
MARKS = (ClaimMark(0, 17, "superseded", "", "d-2", "2026-11-24T09:00:00Z"), ClaimMark(18, 29, ASKED))


def test_a_text_is_shown_in_three_ways() -> None:
    """With marks and without questions, with both, and with what holds alone."""
    old, new = "[superseded since 2026-11-24] The lamp was red.", "The lamp is green."
    assert marked_text(TEXT, MARKS) == f"{old}\n{new}"
    assert marked_text(TEXT, MARKS, "history") == f"{old}\n[asked] Is it blue?\n{new}"
    assert marked_text(TEXT, MARKS, "strict") == new


def test_a_text_without_marks_is_as_it_is() -> None:
    """Also its lines and blanks; marks that overlap show each word once."""
    assert marked_text("a\n\n b ", ()) == "a\n\n b "
    doubled = (ClaimMark(0, 6, "untrusted", "a command"), ClaimMark(2, 9, "superseded"))
    assert marked_text("one two three.", doubled) == "[untrusted: a command] one tw\n[superseded] o t\nhree."


def test_spans_are_where_the_words_stand() -> None:
    """In order, without questions and blanks; a text without marks is one span as it is."""
    told = list(marked_spans(TEXT, MARKS))
    assert told == [(0, TEXT[:17], "[superseded since 2026-11-24]"), (30, "The lamp is green.", "")]
    assert list(marked_spans(" a ", ())) == [(0, " a ", "")]
