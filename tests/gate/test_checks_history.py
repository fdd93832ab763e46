"""History in an answer: told as current it is a fault, told as past or carried by what holds it is none."""

from __future__ import annotations

import pytest

from batos.gate import checks
from batos.gate.ground import Draft, Ground
from batos.memory.evidence import Evidence, Passage

OLD = Passage(1, "talk", "0", 0, "The meeting is in room 4.", standing="[superseded since 2026-11-02]")
NEW = Passage(2, "talk", "0", 30, "The meeting is now in room 9.")


@pytest.mark.parametrize(
    ("answer", "passages", "faults"),
    [
        ("The meeting is in room 4.", (OLD, NEW), 1),
        ("The meeting is now in room 9.", (OLD, NEW), 0),
        ("The meeting was in room 4.", (OLD, NEW), 0),
        ("The meeting is in room 4.", (NEW, Passage(1, "talk", "0", 0, OLD.text)), 0),
    ],
)
def test_what_no_longer_holds_is_not_told_as_current(answer: str, passages: tuple[Passage, ...], faults: int) -> None:
    """The check is made only where something was marked."""
    draft = Draft(answer, Ground("Where is the meeting?", Evidence(passages)))
    verdict = checks.judge(draft).verdict
    assert (checks.SUPERSEDED in verdict.checked) is (passages[0] is OLD)
    found = [each.what for each in verdict.faults if each.check == checks.SUPERSEDED]
    assert len(found) == faults
    assert all("room 4" in each and "Say what holds now" in each for each in found)
