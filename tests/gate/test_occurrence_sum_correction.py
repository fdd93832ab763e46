"""Wrong results of sums that an answer writes out: put right where that is beyond doubt."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.test_checks import draft

from batos.gate import checks
from batos.gate.occurrence import correct_sums, write_like
from batos.memory.evidence import Evidence
from batos.memory.passages import passages

BILL = (
    "Noch zu zahlen: 7.738,45 EUR. Die Versicherung zahlt 3.337,50 EUR."
    " Paint is 1,250.50, wood 300, nails 20, glass 1,300."
)
COSTS = Evidence(passages([("bill", "a" * 64, BILL)]))


def corrected(answer: str) -> str:
    """The answer with its sums put right."""
    return correct_sums(draft(answer, evidence=COSTS, question="How much is it?"))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("7.738,45 Euro - 3.337,50 Euro = 4.391,95 Euro", "7.738,45 Euro - 3.337,50 Euro = 4.400,95 Euro"),
        ("1,300 + 300 = 1,500, with 1,300", "1,300 + 300 = 1,600, with 1,300"),
        ("1,250.50 + 300 + 20 = 1,560.50", "1,250.50 + 300 + 20 = 1,570.50"),
        ("It is 330, as 300 + 20 = 330.", "It is 320, as 300 + 20 = 320."),
        ("| all | 300 + 20 = 1330 |", "| all | 300 + 20 = 320 |"),
    ],
)
def test_a_wrong_result_is_put_right(answer: str, right: str) -> None:
    """As its numbers are written, and wherever the answer repeats it."""
    assert corrected(answer) == right
    assert checks.judge(draft(right, evidence=COSTS, question="How much is it?")).verdict.faults == ()


@pytest.mark.parametrize(
    "answer",
    [
        "300 + 20 = 320",  # it is right
        "300 + 25 = 330",  # 25 is no number of the documents
        "300 * 20 = 500",  # a product may be of other units
        "300 + 20 = 1,250.50",  # a document has the result
        "20 - 300 = 280",
        "300 + 20 % = 330",
        "```\nprint(300 + 20 = 330)\n```",
        "300 and 20 are 330",
        "",
    ],
)
def test_what_is_not_sure_stays(answer: str) -> None:
    """Nothing is changed where the numbers or the meaning are in doubt."""
    assert corrected(answer) == ""


def told_apart(answer: str, question: str = "Wie groß ist der Unterschied?") -> str:
    """The answer to a question for a difference, put right."""
    return correct_sums(draft(answer, evidence=COSTS, question=question))


def test_a_difference_that_a_sentence_names_is_put_right() -> None:
    """Of the two numbers that are all that stands before it; a right one raises no alarm."""
    wrong = (
        "Zu zahlen sind 7.738,45 Euro.\nDie Versicherung zahlt 3.337,50 Euro.\nDer Unterschied beträgt 4.390,95 Euro."
    )
    right = wrong.replace("4.390,95", "4.400,95")
    question = "Wie groß ist der Unterschied?"
    assert told_apart(wrong) == right
    assert told_apart(right) == ""
    assert checks.judge(draft(right, evidence=COSTS, question=question)).verdict.faults == ()
    assert "sum" in {each.code for each in checks.judge(draft(wrong, evidence=COSTS, question=question)).verdict.faults}


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("7.738,45 Euro und 3.337,50 Euro. Der Unterschied beträgt 4.390,95 Euro.", "Was ist zu zahlen?"),
        ("7.738,45 Euro, 3.337,50 Euro und 300 Euro. Der Unterschied beträgt 4.390,95 Euro.", "Der Unterschied?"),
        ("7.738,45 Euro und 12,50 Euro. Der Unterschied beträgt 4.390,95 Euro.", "Der Unterschied?"),
        ("Der Unterschied beträgt 4.390,95 Euro.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Das sind 4.390,95 Euro.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Der Unterschied pro Monat beträgt 366,75 Euro.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Der Unterschied beträgt 366,75 Euro pro Monat.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Der Unterschied war 2 mal so groß.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. 1 Unterschied ist der Selbstbehalt.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Den Unterschied erklärt Seite 9.", "Der Unterschied?"),
        ("7.738,45 Euro und 3.337,50 Euro. Der Unterschied beträgt 4.400 Euro.", "Der Unterschied?"),
    ],
)
def test_what_may_be_another_difference_stays(answer: str, question: str) -> None:
    """It was not asked for, or its numbers are others or unknown, or it is only rounded."""
    assert told_apart(answer, question) in {"", answer.replace("4.400 ", "4.400,95 ")}


@given(st.integers(1, 10**7), st.sampled_from(["1.234,50", "1,234.50", "1 234,50", "12", "1'234.5"]))
def test_a_number_is_written_as_others_are(number: int, example: str) -> None:
    """It is read back as the same number, with the same marks."""
    written = write_like(Decimal(number), [example])
    digits = "".join(each for each in written if each.isdigit())
    decimals = len(example) - 1 - max(example.rfind(","), example.rfind(".")) if len(example) > 2 else 0
    assert int(digits) == number * 10**decimals
    assert {each for each in written if not each.isdigit()} <= {each for each in example if not each.isdigit()}


@given(st.text("0123456789+-=., €\n", max_size=60))
def test_any_answer_is_read(answer: str) -> None:
    """No text raises, and what is corrected once is right."""
    if once := corrected(answer):
        assert corrected(once) == ""
