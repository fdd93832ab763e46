"""What the ledger says of a method against its control, and when it has to go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.methods.execution import scoring
from batos.protocol.method_documents import UseCounts


def counts(calls: int = 0, bad: int = 0, faults: int = 0, seconds: float = 1.0, tokens: int = 100) -> UseCounts:
    """So many uses; seconds and tokens are those of one."""
    return {
        "calls": calls,
        "faults": faults,
        "gate_faults": bad,
        "bad": max(bad, faults),
        "seconds": seconds * calls,
        "tokens": tokens * calls,
        "model_calls": calls,
        "undone": 0,
    }


@pytest.mark.parametrize(
    ("method", "control", "why"),
    [
        (counts(5, faults=3), counts(), "failed in 3 of 5"),
        (counts(5, faults=5), counts(9, bad=9), "failed in 5 of 5"),
        (counts(5, bad=5), counts(3), "5 of 5 uses ended badly, of its control 0 of 3"),
        (counts(20, bad=10), counts(20, bad=2), "10 of 20 uses ended badly"),
        (counts(5, tokens=200), counts(3), "no better than its control and costs 200 tokens a use instead of 100"),
        (counts(5, seconds=9.0), counts(3), "costs 9 s a use instead of 1 s"),
    ],
)
def test_who_does_badly_goes(method: UseCounts, control: UseCounts, why: str) -> None:
    """A method that fails, ends worse than its control, or costs more for no more, is told so with the numbers."""
    assert why in scoring.fault_of(method, control, 5)


@pytest.mark.parametrize(
    ("method", "control"),
    [
        (counts(4, faults=4), counts(9)),  # too early
        (counts(5, bad=5), counts(2)),  # nothing to hold it against
        (counts(5, bad=5), counts(5, bad=5)),  # as bad as the wish itself
        (counts(5, bad=1), counts(3)),  # may be chance
        (counts(5, faults=2), counts(3, bad=1)),
        (counts(5, tokens=120), counts(3)),
        (counts(8, tokens=900, seconds=9.0), counts(8, bad=8)),  # dear, and worth it
        (counts(5, seconds=0.2), counts(2, seconds=0.001)),  # slower, by what nobody notices
    ],
)
def test_who_does_well_or_may_do_so_stays(method: UseCounts, control: UseCounts) -> None:
    """Too few uses, no control, a difference that may be chance, and a price that is worth it, are no reason."""
    assert scoring.fault_of(method, control, 5) == ""


def test_what_it_saves() -> None:
    """Against its control's mean, over all of its uses; nothing is said without a control."""
    told = scoring.contribution(counts(10, bad=0, seconds=0.5, tokens=40), counts(3, bad=1))
    assert (told["seconds_saved"], told["tokens_saved"]) == (5.0, 600)
    assert told["better"] == pytest.approx(2 / 5 - 1 / 12, abs=0.001)
    assert set(scoring.contribution(counts(10), counts()).values()) == {None}
    assert set(scoring.contribution(counts(), counts(10)).values()) == {None}


numbers = st.integers(0, 30)


@given(numbers, numbers, numbers, numbers)
def test_a_method_like_its_control_is_never_worse(calls: int, bad: int, controls: int, least: int) -> None:
    """With the rates and the price of its control, and no fault of its own, nothing is held against it."""
    both = counts(calls, bad=min(bad, calls))
    assert scoring.fault_of(both, both, least) == ""


@given(numbers, numbers, numbers)
def test_evidence_moves_the_rate(calls: int, bad: int, more: int) -> None:
    """A bad use never makes it better, a good one never worse, and no number of uses makes it certain."""
    before = counts(calls, bad=min(bad, calls))
    worse = counts(calls + 1, bad=min(bad, calls) + 1)
    better = counts(calls + 1 + more, bad=min(bad, calls))
    assert 0 < scoring.rate(better) < scoring.rate(before) < scoring.rate(worse) < 1
