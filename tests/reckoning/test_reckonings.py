"""The answer that says a result: the model's own words where they do, else led or replaced by it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reckoning.asking import ask

from batos.gate import figures
from batos.reckoning.reckonings import Reckoning

SALES = "product,units\nKettle,80\nToaster,45\nKettle,59\n"
QUESTION = "How many units of kettles were sold in total?"
LEAD = "Computed from sales.csv: 80 + 59 = 139."


def reckoned(question: str = QUESTION, text: str = SALES) -> Reckoning:
    """Return the result of a question to the sales."""
    found = ask(question, text, "sales.csv")
    assert found is not None
    return found


@pytest.mark.parametrize(
    "answer",
    [
        "139",
        "In total, 139 units were sold.",
        "80 + 59 = 139 kettles",
        "1. The kettles: 139 units.",
        "Kettles sold 139 times, twice as many as 64 others.",
    ],
)
def test_an_answer_that_says_the_result_stays(answer: str) -> None:
    """Its terms may stand before it, and other numbers behind it."""
    assert reckoned().lead_answer(QUESTION, answer) == answer


@pytest.mark.parametrize("answer", ["184 units.", "There were 4 kinds, 139 in all.", "It was 13."])
def test_another_number_in_its_place_goes(answer: str) -> None:
    """Nobody can tell which words of such an answer hold."""
    assert reckoned().lead_answer(QUESTION, answer) == LEAD


def test_words_without_a_number_stay_behind_the_result() -> None:
    """What leaves the result out says nothing against it."""
    assert reckoned().lead_answer(QUESTION, "Quite a lot.") == f"{LEAD}\n\nQuite a lot."


def test_a_number_alone_is_given_alone() -> None:
    """A question for nothing but the number gets no sentence."""
    question = f"{QUESTION} Just the number."
    assert reckoned(question).lead_answer(question, "It is 184.") == "139"


@pytest.mark.parametrize(("answer", "stays"), [("On 1 June 2026.", True), ("2026-06-01", True), ("On 2 June.", False)])
def test_a_day_is_said_in_any_notation(answer: str, stays: bool) -> None:
    """The day counts, not how it is written."""
    question = "What date is three weeks after 11 May 2026?"
    said = reckoned(question).lead_answer(question, answer)
    assert (said == answer) is stays
    assert "1 June 2026" in said or stays


def test_a_result_is_written_as_the_question_writes() -> None:
    """Day, units and sentence are those of the question's language."""
    question = "Wie viele Tage liegen zwischen dem 11. Mai 2026 und dem 1. Juni 2026?"
    assert reckoned(question).lead_answer(question, "Viele.") == "11. Mai 2026 – 1. Juni 2026: 21 Tage\n\nViele."


@given(st.text(max_size=80))
@settings(deadline=None)
def test_every_answer_says_the_result_in_the_end(answer: str) -> None:
    """Whatever a model says, the number stands in the answer, and a second time nothing changes."""
    found = reckoned()
    said = found.lead_answer(QUESTION, answer)
    assert any(Decimal(139) in each.values for each in figures.find(said))
    assert found.lead_answer(QUESTION, said) == said


@given(st.text(max_size=80))
def test_without_a_result_every_answer_stays(answer: str) -> None:
    """Columns that fit equally are no result."""
    assert Reckoning("", "Not computed.", ambiguous=("a", "b")).lead_answer("", answer) == answer
