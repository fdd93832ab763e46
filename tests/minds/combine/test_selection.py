"""Selecting: two orders in which no candidate keeps its place, and one winner however they are named."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.minds.combine import selection
from batos.minds.combine.selection import Merit
from batos.minds.results import PartResult
from batos.protocol.errors import StreamCut


def part(number: int, answer: str, *, known: bool = True, failed: bool = False) -> PartResult:
    """The part of that number."""
    failure = StreamCut("cut") if failed else None
    return PartResult(number, f"{number}_facet_", f"Facet {number}", "Why?", answer, (), known, failure=failure)


def test_only_answers_stand_and_each_once() -> None:
    """Who failed, knows nothing or says nothing is no candidate, nor who says what another said."""
    given_ = [
        part(1, "", failed=True),
        part(2, "Because."),
        part(3, " because.  "),
        replace(part(4, "No idea."), found_nothing=True),
        part(5, "  "),
        part(6, "Why not?"),
    ]
    assert [each.number for each in selection.candidates(given_)] == [2, 6]
    assert selection.candidates(given_[:1]) == ()


@given(question=st.text(max_size=40), answers=st.lists(st.text(max_size=40), max_size=9))
def test_no_candidate_is_shown_at_the_same_place_twice(question: str, answers: list[str]) -> None:
    """Both orders have every candidate once; with two or more none keeps its place; the same texts give the same."""
    first, second = selection.orders(question, answers)
    assert sorted(first) == sorted(second) == list(range(len(answers)))
    assert len(answers) == 1 or all(one != other for one, other in zip(first, second, strict=True))
    assert (first, second) == selection.orders(question, answers)


def test_orders_differ_from_question_to_question() -> None:
    """No place is favoured: over many questions each candidate is shown first about as often as any other."""
    firsts = [selection.orders(f"Question {number}?", ["a", "b", "c"])[0][0] for number in range(300)]
    assert all(60 < firsts.count(place) < 140 for place in range(3))


MERITS = [Merit(1, 2, 0), Merit(0, 0, 1), Merit(0, 1, 2), Merit(0, 1, 3)]


@pytest.mark.parametrize(
    ("named", "winner", "decided"),
    [
        ((0, 0), 0, "agreed"),
        ((0, 1), 1, "faults"),
        ((1, 2), 2, "citations"),
        ((2, 3), 2, "place"),
        ((3, 2), 2, "place"),
        ((0, None), 0, "named"),
        ((None, 3), 3, "named"),
        ((None, None), 2, "place"),
    ],
)
def test_what_decides(named: tuple[int | None, int | None], winner: int, decided: str) -> None:
    """Both orders; else fewest faults, then most citations, then the first, among those that were named."""
    assert selection.decide_winner(named, MERITS) == (winner, decided)


def test_the_same_whichever_order_names_which() -> None:
    """The winner of two calls that differ does not depend on which came first."""
    for one, other in product(range(4), repeat=2):
        assert selection.decide_winner((one, other), MERITS) == selection.decide_winner((other, one), MERITS)
