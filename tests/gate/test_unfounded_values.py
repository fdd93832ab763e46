"""Values and names that stand far from what is asked, and answers that stand nowhere because they judge."""

from __future__ import annotations

import pytest
from tests.gate.test_checks import MET, draft

from batos.gate import checks
from batos.memory.evidence import Evidence, Passage
from batos.memory.passages import passages

RULES = (
    "The choir has a president and a cashier. The president calls the meetings of the choir.\n\n"
    "It sings in the old hall. Scores are lent for a year. A lost one costs eight kroner.\n\n"
)
PRESIDENT = Evidence(passages([("s", "a" * 64, RULES + MET)]))
TERM = "Renewal 12 March 2026, 18:30, room 4\n\n"
LEASE = Evidence(
    (
        Passage(1, "lease.txt", "a" * 64, 0, TERM),
        Passage(
            2, "lease.txt", "a" * 64, len(TERM), "The boiler was changed by the plumber on 20 June 2025. It was loud."
        ),
    )
)
FILM = Evidence(
    passages(
        [
            ("f", "a" * 64, "The film Red Dune of 1921 was directed by Ada Brandt."),
            ("b", "a" * 64, "Ada Brandt (1880 - 14 May 1950) painted in Oslo."),
        ]
    )
)


@pytest.mark.parametrize(
    ("evidence", "question", "answer", "strays"),
    [
        (PRESIDENT, "Who is the president of the choir?", "The president is Anna Lund.", True),
        (PRESIDENT, "Who met Anna Lund?", "Ludwig van Beethoven met her.", False),
        (FILM, "When did the director of the film Red Dune die?", "14 May 1950", False),
        (FILM, "Who directed the film Red Dune?", "Ada Brandt", False),
        (LEASE, "When did the plumber change the boiler?", "12 March", True),
        (LEASE, "When did the plumber change the boiler?", "20 June", False),
        (LEASE, "When was the boiler changed, and what was the fault?", "12 March", True),
    ],
)
def test_a_name_strays_that_stands_far_from_what_is_asked(
    evidence: Evidence, question: str, answer: str, strays: bool
) -> None:
    """In the file that has most of the question: in another one a link from there may lead to it."""
    faults_ = checks.judge(draft(answer, evidence=evidence, question=question)).verdict.faults
    assert ("stray" in {each.code for each in faults_}) == strays


@pytest.mark.parametrize("answer", ["No", "Yes.", "The answer is no."])
def test_yes_and_no_stand_in_no_document(answer: str) -> None:
    """They judge what stands there: no alarm."""
    question = "Did Ada Brandt direct and paint in the same city?"
    assert checks.judge(draft(answer, evidence=FILM, question=question)).verdict.faults == ()
