"""Scores of answers by gold items: what is right in any form of its numbers; no echo, and no length, is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import item_makers
from batos.autotelic.item_makers import score, score_rank
from batos.memory.exchanges import NOTHING_NEAR
from batos.records.gold_items import GoldItem, ItemKind

PASSAGE = (
    "The lamp of Holm Light was lit in 1889. Maro was there. Its first keeper wound the clockwork every four hours and"
    " wrote down each ship. The pier of Skarn was built of granite, and storms of that winter took the crane away."
    " Gulls nest on the north cliff since the cats left, and nobody counts them."
)
KINDS: tuple[ItemKind, ...] = ("R", "A", "H", "N", "S", "U")
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from([*PASSAGE.split(), "12", "twelve", "1,889", "Nothing", "was", "found."])).map(" ".join),
)


def item(kind: ItemKind, question: str, *gold: str) -> GoldItem:
    """An item of ann's."""
    return GoldItem("i-1", kind, question, gold, "d-1", "judge", "ann", "2026-11-30T06:00:00.000Z")


@pytest.mark.parametrize(
    ("gold", "answer", "worth"),
    [
        ("1,889", "It was 1889.", 1.0),
        ("1889", "In 1,889 crowns.", 1.0),
        ("twelve", "There were 12 of them.", 1.0),
        ("12", "Twelve.", 1.0),
        ("Holm Light", "At holm light, they say.", 1.0),
        ("Holm Light", "At Skarn.", 0.0),
        ("12 March 1889", "On 13 March 1889.", 0.0),
        ("Holm Light", "Holm was dark and no light.", 0.0),
    ],
)
def test_a_span_is_found_in_any_form(gold: str, answer: str, worth: float) -> None:
    """As the gate folds numbers and names; a part of it is wrong."""
    assert score(item("A", "Where was it lit, and when did the keeper come?", gold), answer) == worth


@given(st.sampled_from(KINDS), TEXTS, st.lists(TEXTS, max_size=3), TEXTS, TEXTS, st.sampled_from(["", NOTHING_NEAR]))
def test_a_score_is_between_none_and_all(
    kind: ItemKind, question: str, gold: list[str], answer: str, beside: str, ruled: str
) -> None:
    """Of whatever is asked and answered."""
    assert 0.0 <= score(item(kind, question, *gold), answer, beside, ruled) <= 1.0
    assert 0.0 <= score_rank(item(kind, question, *gold), [answer, beside]) <= 1.0


@given(st.sampled_from(KINDS), TEXTS, st.lists(TEXTS, max_size=3), st.sampled_from(["{0}", "{0} {0}", "{0}\n{0}"]))
def test_the_question_said_back_is_worth_nothing(kind: ItemKind, question: str, gold: list[str], form: str) -> None:
    """Once or twice, in whatever case."""
    asked = f"{question.strip()} Is it so?"
    told = item(kind, asked, *(gold if kind != "N" else ()))
    assert score(told, form.format(asked)) == 0.0
    assert score(told, form.format(asked).casefold()) == 0.0


@pytest.mark.parametrize(
    ("kind", "question", "gold"),
    [
        ("A", "When was the lamp lit?", "1889"),
        ("S", "Who is the keeper now?", "Maro"),
        ("U", "Who wound it?", "Its first keeper wound the clockwork every four hours"),
        ("H", "What does log say about birds?", "Gulls nest on the north cliff since the cats left."),
    ],
)
def test_the_whole_passage_is_not_right(kind: ItemKind, question: str, gold: str) -> None:
    """A short answer is; a long one is only if the other arm's is as long."""
    told = item(kind, question, gold)
    assert score(told, f"{gold}") == 1.0
    assert score(told, PASSAGE) < 0.5
    assert score(told, PASSAGE, beside=PASSAGE) == 1.0


@given(st.integers(0, 300))
def test_more_words_are_never_worth_more(many: int) -> None:
    """Whoever adds words to the right answer loses by it, from some length on."""
    told = item("A", "When was the lamp lit?", "1889")
    words = [f"word{number}" for number in range(many)]
    assert score(told, " ".join(["1889", *words])) >= score(told, " ".join(["1889", *words, "fog"]))


@pytest.mark.parametrize(
    ("answer", "ruled", "worth"),
    [
        ("The notes do not say who lit it.", "", 1.0),
        ("Das steht nicht im Text.", "", 1.0),
        ("There is no information on that. Shall I look elsewhere?", "", 1.0),
        ("Nothing that is remembered answers this.", NOTHING_NEAR, 1.0),
        ("Maro lit it.", "", 0.0),
        ("The notes do not say. It was Maro in 1889.", "", 0.0),
        ("Who lit it, which the notes do not say?", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_restraint_is_what_an_unanswerable_question_wants(answer: str, ruled: str, worth: float) -> None:
    """By the gate's forms, or by the rule that answered; a guess beside it is none."""
    assert score(item("N", "Who lit the lamp?"), answer, ruled=ruled) == worth


def test_a_recall_is_worth_one_over_the_rank() -> None:
    """Of the first part that has the whole sentence."""
    told = item("R", "lamp lit", "The lamp of Holm Light was lit in 1889.")
    assert score_rank(told, [PASSAGE]) == 1.0
    assert score_rank(told, ["Gulls.", "The lamp.", PASSAGE, PASSAGE]) == pytest.approx(1 / 3)
    assert score_rank(told, ["Gulls."]) == 0.0


def test_folded_words_are_counted_as_rows() -> None:
    """Of which one may begin where another ends."""
    assert item_makers.count_runs(("a", "b", "a", "b", "a"), ("b",)) == 2
    assert item_makers.count_runs(("a", "a", "a"), ("a",)) == 3
    assert item_makers.count_runs(("ab",), ("a",)) == 0
