"""Useless divisions: which texts divide a question, and which only look as if they did."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given

from batos.memory.segmentation import terms
from batos.minds.calls import decisions

QUESTION = "How does the keeper keep the lamp burning through the night?"
GOOD = ("What feeds the flame?", "Who winds the clockwork?", "When is the wick trimmed?")
REQUEST = "Write 3 short questions whose answers together answer this question:"

words = st.text("abcdefghé字कд", min_size=1, max_size=6)
lines = st.lists(words, min_size=1, max_size=12).map(" ".join)
divisions = st.lists(lines.map("{}?".format), min_size=1, max_size=5)


def test_different_questions_divide_a_question() -> None:
    """Nothing is wrong with them, nor with one that is the question itself."""
    assert decisions.fault_of_division(GOOD, QUESTION, REQUEST, ["The Guide"]) == ""
    assert decisions.fault_of_division((*GOOD, QUESTION), QUESTION, REQUEST) == ""


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("Brick Tamland", *GOOD), "only a name"),
        (("THE GUIDE?", *GOOD), "only a name"),
        (("The Hitchhiker's Guide?", *GOOD), "only a name"),
        (("Write 3 short questions whose answers?", *GOOD), "copies the request"),
        (("...", *GOOD), "empty"),
        ((f"When is {'17 ' * 40}?", *GOOD), "repeats itself"),
        (("It burns well.", *GOOD), "no question"),
        (("What FEEDS the flame", *GOOD), "no question"),
        (("what feeds the flame??", *GOOD), "alike"),
    ],
)
def test_what_is_wrong_is_told(texts: tuple[str, ...], told: str) -> None:
    """Names, the request's words, no words, loops, statements and parts that are alike are each found."""
    labels = ["tamland_facet_", "Brick Tamland", "The Guide", "The Hitchhiker's Guide to the Galaxy"]
    assert told in decisions.fault_of_division(texts, QUESTION, REQUEST, labels)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("灯塔看守人怎样让灯整夜亮着？", ("谁来添油？", "钟表多久上一次弦？")),
        ("كيف يبقي الحارس المصباح مضاء؟", ("من يملأ الزيت؟", "متى يقص الفتيل؟")),
        ("Πώς καίει ο φάρος;", ("Ποιος ανάβει;", "Πόσο λάδι καίει;")),
        ("ผู้ดูแลทำอย่างไรให้ตะเกียงสว่างตลอดคืน", ("ใครเติมน้ำมัน", "ตัดไส้ตะเกียงเมื่อใด")),
        ("Describe the lamp.", ("Name its parts.", "Say what each of them does.")),
    ],
)
def test_scripts_and_orders_are_judged_by_the_mark_that_the_question_has(question: str, parts: tuple[str, ...]) -> None:
    """A question without a mark needs none in its parts; one with a mark does, of whatever script."""
    assert decisions.fault_of_division(parts, question, REQUEST) == ""
    if decisions.asks(question):
        unmarked = tuple("".join(each for each in part if not decisions.asks(each)) for part in parts)
        assert decisions.fault_of_division(unmarked, question, REQUEST) == "a part is no question"


@given(divisions, st.randoms())
def test_the_order_of_the_parts_changes_nothing(texts: list[str], random: object) -> None:
    """Neither whether they divide the question nor what is told."""
    shuffled = sorted(texts, key=lambda each: hash((each, str(random))))
    assert decisions.fault_of_division(texts, QUESTION, REQUEST) == decisions.fault_of_division(
        shuffled, QUESTION, REQUEST
    )


@given(divisions)
def test_what_passes_has_no_two_parts_alike(texts: list[str]) -> None:
    """Each part of a division that passes has a mark and a word, and one part twice never passes."""
    if decisions.fault_of_division(texts, QUESTION, REQUEST) == "":
        assert all(decisions.asks(text) and list(terms(text)) for text in texts)
        assert not any(decisions.alike(a, b) for at, a in enumerate(texts) for b in texts[:at])
    assert decisions.fault_of_division([*texts, texts[0]], QUESTION, REQUEST)


@given(lines, lines)
def test_likeness_is_mutual_and_blind_to_case_marks_and_order(one: str, other: str) -> None:
    """A text is like itself, written in any way."""
    assert decisions.alike(one, other) == decisions.alike(other, one)
    turned = "! ".join(reversed(one.upper().split()))
    if set(terms(turned)) == set(terms(one)):
        assert decisions.alike(one, turned)
    assert decisions.alike(one, one)


@given(lines, st.integers(4, 30))
def test_a_loop_repeats_itself(text: str, times: int) -> None:
    """Whatever is said so often that it is long enough."""
    looped = " ".join([text] * times)
    assume(len(list(terms(looped))) >= decisions.LEAST_TERMS)
    assert decisions.repeats(looped)


@given(lines)
def test_every_name_that_was_shown_is_found(label: str) -> None:
    """Copied in any case, with a mark of a question behind it."""
    found = decisions.fault_of_division([f"{label.upper()}?"], QUESTION, REQUEST, [label])
    assume("".join(terms(label.upper())) == "".join(terms(label)))
    assert found == "a part is only a name from the request"


@given(lines)
def test_words_of_the_question_are_no_copy_of_the_request(text: str) -> None:
    """A part may repeat the question, even if the request is in the same words."""
    assert not decisions.copies(text, text, text)
    if len(list(terms(text))) >= decisions.COPIED_RUN:
        assert decisions.copies(text, text, "")


def test_a_question_is_no_answer_to_itself() -> None:
    """An order may be answered by its own words, and a short answer may have words of the question alone."""
    assert decisions.echoes(QUESTION.rstrip("?").upper(), QUESTION)
    assert not decisions.echoes("Say: the lamp burns.", "Say: the lamp burns.")
    assert not decisions.echoes("The lamp.", "Which is older, the lamp or the bell?")


def test_a_text_bears_on_a_question_by_a_word_that_is_not_small() -> None:
    """The first letters of a word are compared; a question of small words alone says nothing of what bears on it."""
    assert decisions.bears_on("Who trims its wicks?", "How is a wick trimmed?")
    assert not decisions.bears_on("Who is it and what does it do?", "How is a wick trimmed?")
    assert decisions.bears_on("Which queen?", "What is it?")


@given(lines, lines)
def test_a_question_bears_on_itself_with_more(question: str, more: str) -> None:
    """Further words take nothing away."""
    assert decisions.bears_on(f"{question} {more}", question)
