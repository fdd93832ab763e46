"""Meaning as a classifier: vectors that lie apart are told apart, and those of another width refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.routing import training
from batos.routing.training import Semantic, log_shares


def test_meaning_learns_what_it_is_given() -> None:
    """Vectors that lie apart are told apart, the same way each time; what is read back says the same."""
    labelled = [("ROBIN", [1.0, 0.1, 0.0]), ("BRICK", [0.0, 0.1, 1.0])] * 20
    made = training.learn_meanings(("ROBIN", "BRICK"), labelled)
    assert made == training.learn_meanings(("ROBIN", "BRICK"), labelled)
    training._weights_of.cache_clear()
    assert made == training.learn_meanings(("ROBIN", "BRICK"), labelled), "what is learnt anew is what was remembered"
    logs = made.logs([3.0, 0.0, 0.1])
    assert logs[0] > logs[1]
    assert sum(map(math.exp, logs)) == pytest.approx(1)
    again = Semantic.unpack(("ROBIN", "BRICK"), made.pack())
    assert again.logs([3.0, 0.0, 0.1]) == pytest.approx(logs, abs=1e-4)
    assert again.width == 3
    assert made.logs([0.0, 0.0, 0.0])  # a vector of nothing is a vector


def test_vectors_of_another_width_are_refused() -> None:
    """A model that was changed under one name is noticed, in learning and in asking."""
    made = training.learn_meanings(("ROBIN", "BRICK"), [("ROBIN", [1.0, 0.0]), ("BRICK", [0.0, 1.0])])
    with pytest.raises(ValueError, match="learnt from 2"):
        made.logs([1.0, 0.0, 0.0])
    several: list[list[tuple[str, list[float]]]] = [[], [("ROBIN", [1.0]), ("BRICK", [1.0, 2.0])], [("ROBIN", [])]]
    for labelled in several:
        with pytest.raises(ValueError, match="one width"):
            training.learn_meanings(("ROBIN", "BRICK"), labelled)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_shares_sum_to_one(values: list[float]) -> None:
    """Whatever the numbers are, as logarithms of shares they are a whole."""
    assert sum(map(math.exp, log_shares(values))) == pytest.approx(1)
