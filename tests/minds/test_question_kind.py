"""The kind of answer that a question wants, over questions of three authors in six languages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.minds.question_kind import kind_of

_DATA: Final = Path(__file__).parents[1] / "data"
_PIECES: Final = st.sampled_from(
    [
        "which ",
        "list ",
        "a",
        "の",
        "写",
        "\u0301",
        '"',
        "「",
        "select ",
        ",",
        " from ",
        "_",
        "{",
        "|",
        "/",
        "ä",
        "ß",
        "\n",
        "。",
        "= ",
    ]
)


def _questions(author: str) -> list[dict[str, str]]:
    lines = (_DATA / f"question-forms-{author}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("author", "right", "sure"), [("dev", 0.98, 1.0), ("a", 0.96, 0.98), ("b", 0.91, 0.96)])
def test_the_kind_is_recognised(author: str, right: float, sure: float) -> None:
    """Of each author's questions as many are recognised as when this was written, and few are a fact that are none."""
    asked = [(each["kind"], kind_of(each["text"])) for each in _questions(author)]
    facts = [kind for kind, told in asked if told == "fact"]
    assert sum(kind == told for kind, told in asked) / len(asked) >= right
    assert facts.count("fact") / len(facts) >= sure


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "zh", "ja"])
def test_no_language_falls_behind(language: str) -> None:
    """Each language is recognised in more than five of six questions."""
    asked = [each for author in "ab" for each in _questions(author) if each["language"] == language]
    assert sum(each["kind"] == kind_of(each["text"]) for each in asked) / len(asked) >= 0.84


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who wrote the summary?", "fact"),
        ("Wann wurde die Übersetzung geliefert?", "fact"),
        ("要約を書いたのは誰？", "fact"),
        ("摘要里写的价格是多少", "fact"),
        ("I don't need a list of every clause, just an overview.", "summarise"),
        ("不用总结，把作业全部告诉我", "list"),
        ("Translate this Perl script into Go", "code"),
        ("Translate the table into Welsh", "rewrite"),
        ("Boil the code of conduct down to one paragraph", "summarise"),
        ("Uebersetze die Liste ins Englische", "rewrite"),
        ("RESUME-MOI CE RAPPORT", "summarise"),
        ("比較レポートの文体を「です・ます」に統一して", "rewrite"),
        ("", "other"),
        ("Thanks!", "other"),
        ("Comment s’appelle le président de la chorale ?", "fact"),
        ("What did the cat weigh in 2024?", "fact"),
    ],
)
def test_a_word_may_mislead(question: str, kind: str) -> None:
    """A noun of one kind does not decide where a question word or an order tells of another."""
    assert kind_of(question) == kind


def test_a_question_that_says_its_form_is_no_plain_fact() -> None:
    """No form of ours is asked for then."""
    assert kind_of("Who built it?") == "fact"
    assert kind_of("In exactly two words: who built it?") != "fact"


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join)))
def test_any_text_has_a_kind(text: str) -> None:
    """No text raises, and a text is of the same kind in other letters of the same meaning."""
    assert kind_of(text) == kind_of(f"  {text} ".strip())


def _took(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


@pytest.mark.parametrize(
    "piece", ["a", "which ", "select a,", '"', "「の", "写", "e\u0301", "_ |", "/a", "{a", "not , "]
)
def test_a_long_text_costs_no_more_than_its_beginning(piece: str) -> None:
    """A text that repeats what the patterns look for takes a hundred times as long at most as one that is cut off."""
    kind_of("warm up")
    short, long = piece * 600, piece * 60_000
    least = min(_took(lambda: kind_of(short)) for _ in range(3))
    assert min(_took(lambda: kind_of(long)) for _ in range(3)) < 100 * least
