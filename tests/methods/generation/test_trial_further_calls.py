"""Further calls: of the types of the checks, none of them a check, and bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.methods.generation.method_checks import Check, display
from batos.methods.generation.trial import MOST, further_calls

VALUES = st.text(max_size=5) | st.integers(-9, 9) | st.lists(st.integers(-9, 9), max_size=4) | st.booleans() | st.none()


@given(st.lists(st.lists(VALUES, max_size=3), max_size=5))
def test_they_are_other_calls_of_the_same_types(arguments: list[list[object]]) -> None:
    """As many arguments, each of its type, and no call twice."""
    checks = [Check(each) for each in arguments]  # type: ignore[arg-type]
    found = further_calls(checks)
    told = [display(list(call.arguments)) for call in found]
    assert len(set(told)) == len(told) <= MOST
    assert not {display(each) for each in arguments} & set(told)
    kinds = {tuple(map(type, each)) for each in arguments}
    assert all(tuple(map(type, call.arguments)) in kinds for call in found)


def test_slots_and_answers_stay() -> None:
    """They are what the method works with."""
    (first, *_) = further_calls([Check([1], {"count": 2}, {"log_": [None]}, 3)])
    assert (first.before, first.replies, first.arguments) == ({"count": 2}, {"log_": [None]}, [2])
