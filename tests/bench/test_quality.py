"""The bench of answers: what counts as right, which sentences are carried, and which citation is the gold one."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from ollama_emulator.emulator import Emulator, Options
from quality import MOST_WORDS, OVERDUE, AnswerWithCost, Arm, find_carried, is_right, normalise, overlaps, run_until
from voice_side import AttachedQuestion, uvm_over

CONTEXT = "The keeper winds the clockwork. The oil is carried up 86 steps from the yard. It rains."
ASKED = AttachedQuestion("How many steps?", CONTEXT, ("86 steps",), (CONTEXT.index("86"),))


@pytest.mark.parametrize(
    ("answer", "right"),
    [("It is 86 steps.", True), ("THE 86, steps!", True), ("186 steps", False), ("86", False), ("", False)],
)
def test_an_answer_is_right_if_a_gold_answer_stands_in_it(answer: str, right: bool) -> None:
    """Whole words, whatever their case, punctuation and articles."""
    assert is_right(answer, ASKED.answers) is right


def test_a_long_answer_is_never_right() -> None:
    """A passage that is copied whole would have every answer in it."""
    assert is_right("86 steps " + "word " * (MOST_WORDS - 2), ASKED.answers)
    assert not is_right("86 steps " + "word " * MOST_WORDS, ASKED.answers)


@given(st.text(max_size=200))
def test_normalising_twice_changes_nothing(text: str) -> None:
    """Nor is a blank left at an end."""
    assert normalise(normalise(text)).split() == normalise(normalise(text)).strip().split()
    assert normalise(text) == normalise(text).strip()


def test_a_sentence_is_carried_by_one_sentence_of_the_passage() -> None:
    """A sentence that the passage does not have is not, and a greeting is not counted."""
    assert find_carried("The oil is carried up 86 steps. The wolves sing at dawn.", ASKED) == [True, False]
    assert find_carried("", ASKED) == []


def test_the_gold_citation_overlaps_the_sentence_of_the_gold_answer() -> None:
    """A quotation from elsewhere, or from nowhere, does not."""
    assert overlaps("The oil is carried up", ASKED)
    assert not overlaps("The keeper winds", ASKED)
    assert not overlaps("The keeper sleeps", ASKED)
    assert not overlaps("", ASKED)


def test_what_a_rule_made_is_never_right() -> None:
    """Such an answer counts by itself, and citations are looked at in right answers alone."""
    arm = Arm((ASKED,) * 3)
    arm.answers += [
        AnswerWithCost("It is 86 steps.", ("The oil is carried up", "It rains."), tokens=50, wasted=5, seconds=2.0),
        AnswerWithCost("86 steps", by_rule=True, tokens=50, seconds=4.0),
        AnswerWithCost("", failed="ollama_busy", seconds=3.0),
    ]
    found = arm.as_dict()
    assert (found["right"], found["by_rule"], found["failed"]) == (0.3333, 0.3333, 1)
    assert (found["citation_precision"], found["citation_recall"]) == (0.5, 1.0)
    assert (found["tokens"], found["wasted"], found["seconds"], found["calls"]) == (100, 0.05, 3.0, 3)


async def test_a_mission_that_hangs_is_cancelled_and_overdue() -> None:
    """The bench goes on with the next question."""
    async with Emulator(Options()).serving() as url, uvm_over(url) as uvm:
        mission = await uvm.missions.submit({"text": ASKED.text, "effort": "reflex"}, [])
        shown, failed = await run_until(uvm, mission, 0)
    assert (failed, shown["status"]) == (OVERDUE, "cancelled")
