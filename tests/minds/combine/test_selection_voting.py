"""Voting: what counts as the same answer, who has the majority, and that asking can stop as soon as it is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.minds.combine import selection
from batos.minds.results import PartResult

QUESTION = "How many steps lead up to the gallery?"


def part(number: int, answer: str = "", *, known: bool = True) -> PartResult:
    """The part of that number with that answer."""
    return PartResult(number, f"{number}_facet_", f"Facet {number}", QUESTION, answer, (), known)


def parts(*answers: str) -> list[PartResult]:
    """A part for each answer; an empty one is open."""
    return [part(number, answer) for number, answer in enumerate(answers, start=1)]


def alike(one: str, other: str, question: str = QUESTION) -> bool:
    """Whether two answers say the same, whichever comes first."""
    first, second = selection.ballot(one, question), selection.ballot(other, question)
    assert selection.same_answer(first, second) is selection.same_answer(second, first)
    return selection.same_answer(first, second)


LONG = "It is a wide and quiet place above the water, where keepers used to sit in the evening and watch the boats"


def test_a_free_text_is_none_to_vote_on() -> None:
    """More than a sentence, with neither a yes nor a number of its own; an open part is no text at all."""
    assert selection.are_free(parts("Anna Lund.", f"{LONG} as they come home."), QUESTION)
    assert not selection.are_free(parts("Anna Lund.", "", f"Yes. {LONG} come.", f"{LONG}, all 86 of them."), QUESTION)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("86", "There are 86 steps."),
        ("1,200 cans", "Es sind 1.200 Kannen."),
        ("1 200", "1200"),
        ("12.5 %", "12,5 Prozent"),
        ("Eighty-six", "86 steps"),
        ("sechsundachtzig Stufen", "eighty-six"),
        ("八十六级", "There are 86."),
        ("There are 86.", "86 steps lead up to the gallery, and 3 more to the lamp."),
        ("Yes.", "Yes, every night."),
        ("Ja, das stimmt.", "Yes, that is right."),
        ("No.", "Nein, niemals."),
        ("是的，没错。", "是。"),
        ("Anna Lund", "It is Anna Lund who carries it."),
        ("anna lund.", "ANNA LUND"),
        ("Because the wick turns yellow and smokes", "The wick smokes and turns yellow"),
        ("La lampe est éteinte", "la lampe, éteinte"),
        ("It isn't lit", "It isn\u2019t lit."),
    ],
)
def test_these_say_the_same(one: str, other: str) -> None:
    """Numbers by value, yes and no by word, phrases where one has the other, longer texts by their words."""
    assert alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("86", "87"),
        ("86", "eighty-seven"),
        ("1,200 cans", "1,201 cans"),
        ("Yes.", "No, never."),
        ("Ja.", "Nein."),
        ("It is lit.", "It is not lit."),
        ("The bridge carries lorries in winter", "The bridge carries no lorries in winter"),
        ("Anna Lund", "Berta Lund"),
        ("The wick turns yellow and smokes", "Oil costs more than it did before the war"),
        ("left", "right"),
    ],
)
def test_these_do_not(one: str, other: str) -> None:
    """Another number, the opposite, another name, other words."""
    assert not alike(one, other)


@given(answer=st.text(max_size=200), question=st.text(max_size=80))
def test_an_answer_says_the_same_as_itself(answer: str, question: str) -> None:
    """Whatever the texts are, none is compared with an error, and each is like itself."""
    assert alike(answer, answer, question)


@given(one=st.text(max_size=80), other=st.text(max_size=80), question=st.text(max_size=40))
def test_likeness_has_no_order(one: str, other: str, question: str) -> None:
    """Who was asked first makes no difference to whether two say the same."""
    alike(one, other, question)


answers = st.lists(st.sampled_from(["86", "87", "88", ""]), min_size=1, max_size=9)


@given(answers=answers)
def test_early_stopping_gives_the_same_outcome_as_asking_all(answers: list[str]) -> None:
    """Asked one after another the majority is that of all parts asked at once, or there is none."""
    every = parts(*answers)
    asked: list[PartResult] = []
    for each in every:
        asked.append(each)
        if selection.tally(asked, QUESTION, len(every)).majority:
            break
    stopped, whole = (selection.tally_when_certain(some, QUESTION, len(every)) for some in (asked, every))
    assert stopped == whole
    counts = {said: answers.count(said) for said in answers if said}
    winner = next((said for said, count in counts.items() if 2 * count > sum(counts.values())), None)
    found = whole.majority
    assert (found[0].answer if found else None) == winner


@given(answers=answers)
def test_it_stops_as_soon_as_no_later_vote_can_change_it(answers: list[str]) -> None:
    """While there is no majority yet, the parts still to come can bring another one than those so far would."""
    every = parts(*answers)
    for asked in range(len(every) + 1):
        tally = selection.tally(every[:asked], QUESTION, len(every))
        left = len(every) - asked
        most = max(map(len, tally.groups), default=0)
        assert (tally.majority is not None) is (2 * most > tally.votes + left)


def test_the_quickest_vote_of_three_asks_two() -> None:
    """Two who agree outvote a third, whatever it would say; of four it takes three."""
    assert selection.tally(parts("86", "86"), QUESTION, 3).majority
    assert not selection.tally(parts("86"), QUESTION, 3).majority
    assert not selection.tally(parts("86", "86"), QUESTION, 4).majority
    assert selection.tally(parts("86", "86", "86"), QUESTION, 4).majority


def test_a_gist_is_compared_instead_of_the_answer() -> None:
    """Where a part gave one."""
    one = replace(part(1, "A long story of wicks and oil."), gist="86")
    other = replace(part(2, "Another tale altogether, of clockworks."), gist="There are 86.")
    assert selection.tally([one, other], QUESTION, 2).majority == (one, other)


def test_who_has_no_answer_has_no_vote() -> None:
    """A part that knows nothing or failed counts for nobody: one vote of one is a majority."""
    tally = selection.tally([part(1, "86"), replace(part(2, "87"), found_nothing=True), part(3)], QUESTION, 3)
    assert tally.votes == 1
    assert tally.majority == (part(1, "86"),)


def test_nobody_votes() -> None:
    """Without an answer there is no group and no majority."""
    assert selection.tally(parts("", ""), QUESTION, 2) == selection.VoteCount((), 2, 2)
    assert selection.tally((), QUESTION, 0).majority is None


def test_a_tie_has_no_majority() -> None:
    """Two against two: the groups stand in the order in which each was first said."""
    tally = selection.tally(parts("86", "87", "87", "86"), QUESTION, 4)
    assert tally.majority is None
    assert [[each.number for each in group] for group in tally.groups] == [[1, 4], [2, 3]]


def test_each_joins_the_first_group_that_says_the_same() -> None:
    """Likeness is not transitive (1.200 is 1200 or 1.2): the first said is what later ones are held against."""
    tally = selection.tally(parts("1200", "1.2", "1.200"), QUESTION, 3)
    assert [[each.number for each in group] for group in tally.groups] == [[1, 3], [2]]
