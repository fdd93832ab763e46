"""The count of lines, sentences, bullets or words that a question asks for, and answers that have another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.test_checks import draft
from tests.memory.growing import MOST, growth

from batos.gate import ground
from batos.gate.checks import judge
from batos.gate.counts import asked_counts, count_of, other_counts

ASKING = [
    ("Answer with one word.", ("words", 1, 1)),
    ("What is it, in a single sentence?", ("sentences", 1, 1)),
    ("Antworte in genau drei Zeilen.", ("lines", 3, 3)),
    ("Fasse es in höchstens vier Sätzen zusammen.", ("sentences", None, 4)),
    ("Résume l'article en trois puces.", ("bullets", 3, 3)),
    ("Écris un message de 60 mots au plus.", None),
    ("Écris un message en 60 mots au plus.", ("words", None, 60)),
    ("Resume en dos o tres frases.", ("sentences", 2, 3)),
    ("Riassumi in al massimo venti parole.", ("words", None, 20)),
    ("As four to six bullets, please", ("bullets", 4, 6)),
    ("Write at least 5 lines about it", ("lines", 5, None)),
    ("in 3-4 sentences", ("sentences", 3, 4)),
    ("用三句话概括。", ("sentences", 3, 3)),
    ("50字以内で", ("words", None, 50)),
    ("三行でまとめて", ("lines", 3, 3)),
    ("One line for each person.", None),
    ("Name them in one line for each club.", None),
    ("Eine Zeile je Aufgabe.", None),
    ("What do the last two lines of the poem say?", None),
    ("Who is named in two lines of the poem?", None),
    ("In other words, is it open?", None),
    ("Say it in a few words.", None),
    ("What does line 3 say?", None),
]


@pytest.mark.parametrize(("question", "asked"), ASKING)
def test_a_question_asks_for_a_count(question: str, asked: tuple[str, int | None, int | None] | None) -> None:
    """In several languages, with a bound or a range; a count for each of several things is none of the whole."""
    found = [(each.unit, each.least, each.most) for each in asked_counts(question)]
    assert found == ([] if asked is None else [asked])


@pytest.mark.parametrize(
    ("question", "answer", "faulty"),
    [
        ("In exactly two sentences?", "It burns. It is old.", False),
        ("In exactly two sentences?", "It burns, and Dr. Lund lit it.", True),
        ("In three bullets?", "- oil\n- wick\n- glass", False),
        ("In three bullets?", "- oil\n- wick", True),
        ("At most five words?", "It burns oil", False),
        ("At most five words?", "It burns the oil of whales", True),
        ("用五个字回答", "它烧鲸鱼油", False),
        ("用五个字回答", "它烧的是鲸鱼油", True),
    ],
)
def test_an_answer_has_the_count(question: str, answer: str, *, faulty: bool) -> None:
    """The fault has the words that ask, and the count that is there."""
    assert bool(other_counts(draft(answer, question=question))) == faulty


def test_nothing_is_checked_where_no_count_is_asked_for() -> None:
    """The check was not made then."""
    assert other_counts(draft("It burns.")) is None


@given(st.lists(st.sampled_from(["oil", "wick 3", "灯"]), max_size=8))
def test_lines_and_items_are_counted_alike(items: list[str]) -> None:
    """A list has as many bullets as lines, and blank lines are none."""
    text = "\n\n".join(f"- {each}" for each in items)
    assert count_of("lines", text) == count_of("bullets", text) == len(items)


@given(st.text(max_size=200))
def test_any_question_is_read(text: str) -> None:
    """Bounds are of what was asked, and at least one stands."""
    assert all((each.least or each.most) and each.said in text for each in asked_counts(text))


@pytest.mark.parametrize("piece", ["in at most ", "in 3 ", "in three-", "三", "in up to 3 to "])
def test_hostile_questions_are_read_in_time(piece: str) -> None:
    """In a time that grows with their length."""
    assert growth(lambda size: list(asked_counts(piece * size)), 500) < MOST


@pytest.mark.parametrize("language", ground.table())
def test_who_withholds_an_answer_is_at_no_fault(language: str) -> None:
    """What stands in the place of an answer that no document carries raises no alarm, whatever form was asked for."""
    found = judge(draft(ground.tell("withheld", {}, language), question="Summarise it in four bullets.")).verdict
    assert {each.check for each in found.faults} <= {"language"}
