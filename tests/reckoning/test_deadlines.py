"""Days that the evidence gives by a period: what they are counted from, and when nothing is sure."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reckoning.asking import ask

LETTER = "{head}\nLeeds, 3 March 2026\n\nThe amount is payable within 30 days of the invoice date.\n"
DAYS = st.dates(date(1950, 1, 1), date(2090, 12, 31))


def day(question: str, text: str) -> date | None:
    """Return the day that a question gets from a text."""
    found = ask(question, text, "note.md")
    return found.day if found else None


@given(DAYS, st.integers(2, 90), st.sampled_from(["before", "after"]))
def test_a_period_is_counted_from_the_day_that_another_sentence_gives(event: date, count: int, way: str) -> None:
    """So many days before or after a thing are counted from its day, whichever that is."""
    text = f"The inspection is on {event:%Y-%m-%d}.\nThe report is sent {count} days {way} the inspection.\n"
    expected = event + timedelta(count if way == "after" else -count)
    assert day("When is the report sent?", text) == expected
    assert day("When is the inspection?", text) is None


@given(DAYS, DAYS)
def test_two_days_of_one_thing_give_none(one: date, other: date) -> None:
    """Where the evidence has two days for what a period is counted from, none is taken."""
    text = f"The audit is on {one}.\nThe audit is on {other}.\nThe form is due 9 days before the audit.\n"
    expected = one - timedelta(9) if one == other else None
    assert day("When is the form due?", text) == expected


@pytest.mark.parametrize(("head", "expected"), [("INVOICE 12", date(2026, 4, 2)), ("Minutes", None)])
def test_only_an_invoice_has_a_day_of_the_invoice(head: str, expected: date | None) -> None:
    """The day at the head of another text is not that of an invoice which the text speaks of."""
    assert day("By when is the amount payable?", LETTER.format(head=head)) == expected


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When is the lease over?", "The lease is over on 4 May 2026, two weeks after the inspection."),
        ("When is the fee due?", "The fee is due on 4 May 2026, the materials are due two weeks later."),
        (
            "When does the lease end?",
            "The lease ends on 4 May 2026.\nKeys go back six days after the end of the lease.",
        ),
        ("By when must it be paid?", "Pay it within nine days."),
        (
            "When must the bike be back?",
            "Rides: 3 May 2026 Leeds, 9 May 2026 York.\nThe bike goes back 2 days after it.",
        ),
        ("When may I leave?", "The door closes two days before the feast. The feast is on 4 May 2026."),
    ],
)
def test_what_is_said_of_another_thing_is_not_computed(question: str, text: str) -> None:
    """A period in the same text that belongs to something else, or is counted from nothing known, gives no day."""
    assert day(question, text) is None


def test_the_sentences_are_cited() -> None:
    """The sentence with the period and the one with the day are rows, and the line shows how they go together."""
    text = "The inspection is on 4 May 2026.\nThe report is sent three weeks after the inspection.\n"
    found = ask("When is the report sent?", text, "note.md")
    assert found is not None
    assert found.line == "Computed from note.md: 4 May 2026 + 3 weeks = 25 May 2026 (Monday)."
    assert [text[each.start : each.end] for each in found.rows] == [each.text for each in found.rows]
    assert {each.text for each in found.rows} == set(text.splitlines())


def test_a_day_of_the_question_is_counted_from() -> None:
    """A part of the question that names a day says when the thing happened that the evidence counts from."""
    text = "You can withdraw within 14 days of the signing.\n"
    assert day("I signed on 3 March 2026. Until when can I withdraw?", text) == date(2026, 3, 17)
    assert day("I signed on 3 March 2026 and paid on 5 March 2026. Until when can I withdraw?", text) is None
    assert day("Until when can I withdraw?", text) is None
