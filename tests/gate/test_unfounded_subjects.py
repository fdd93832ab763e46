"""Answers about somebody, or some year, that a question names and that its files do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.gate.test_checks import draft

from batos.gate import checks
from batos.memory.evidence import Evidence
from batos.memory.passages import passages

TEXT = (
    "Seats: Rosemary: Ann Hart, Bo Lindqvist. Mint: Cy Moran, Dee Ochoa.\n\n"
    "In 2024 the cat weighed 11.8 kg, in 2025 it weighed 12.1 kg."
)
SEATS = Evidence(passages([("seats.txt", "a" * 64, TEXT)]))
WHERE = "At which table is Harriet Kemble?"


def codes(answer: str, question: str, evidence: Evidence = SEATS) -> set[str]:
    """The codes of the faults of an answer."""
    return {each.code for each in checks.judge(draft(answer, evidence=evidence, question=question)).verdict.faults}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (WHERE, "Harriet Kemble sits at Mint."),
        (WHERE, "Mint"),
        ("Wo sitzt Frau Kemble?", "Frau Kemble sitzt an Mint."),
        ("What was the weight of the cat in 2022?", "In 2022 the cat weighed 11.8 kg."),
        ("What was the weight of the cat in 2022?", "11.8 kg"),
    ],
)
def test_what_no_file_names_has_no_table_and_no_weight(question: str, answer: str) -> None:
    """Neither the name nor the year is in the file, so that nothing there is about it."""
    assert "unnamed" in codes(answer, question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (WHERE, "Harriet Kemble is not on the list."),
        (WHERE, "Ann Hart sits at Rosemary."),
        ("At which table is Ann Kemble?", "Ann Kemble sits at Rosemary."),
        ("At which table is Ann Hart?", "Rosemary"),
        ("What did the cat weigh in 2024?", "In 2024 it weighed 11.8 kg."),
        ("What did the cat weigh on 3 March 2022?", "On 3 March 2022 the cat weighed 11.8 kg."),
        ("Write a letter to Harriet Kemble about her table.", "Dear Harriet Kemble, you sit at Mint."),
        ("My name is Harriet Kemble. At which table is Ann Hart?", "Rosemary"),
    ],
)
def test_what_is_named_or_denied_has_no_such_fault(question: str, answer: str) -> None:
    """Nor a text that was asked for, nor where another sentence tells who is meant."""
    assert "unnamed" not in codes(answer, question)


def test_only_files_that_were_shown_whole_are_known_not_to_have_a_name() -> None:
    """A part that was left out, or another memory, may have it."""
    (passage,) = SEATS.passages
    assert "unnamed" not in codes("Mint", WHERE, replace(SEATS, omitted_passages=1))
    assert "unnamed" not in codes("Mint", WHERE, Evidence((replace(passage, document="d-1"),)))
