"""Checks as lines of Python: read in each form that models use, and never run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.methods.generation.coder_replies import MOST, parse_lines
from batos.methods.generation.method_checks import Check

LINES = {
    "assert": ('assert size_("abc") == 3', Check(["abc"], result=3)),
    "without the underscore": ('assert size("abc") == 3', Check(["abc"], result=3)),
    "of an object": ('assert self.size_("abc") == 3', Check(["abc"], result=3)),
    "awaited": ('assert await size_("abc") == 3', Check(["abc"], result=3)),
    "a comparison": ('size_("abc") == 3', Check(["abc"], result=3)),
    "true": ("assert size_([])", Check([[]], result=True)),
    "false": ("assert not size_([])", Check([[]], result=False)),
    "is": ("assert size_(1) is None", Check([1], result=None)),
    "print": ('print(size_("abc"))  # Output: 3', Check(["abc"], result=3)),
    "an arrow": ('size_("abc") -> 3', Check(["abc"], result=3)),
    "a list": ("- size_((1, 2)) == [2, 1]", Check([[1, 2]], result=[2, 1])),
    "a name": ("assert size_(text='abc') == 3", Check(["abc"], result=3)),
    "a prompt": (">>> assert size_('abc') == 3", Check(["abc"], result=3)),
}


@pytest.mark.parametrize("form", LINES)
def test_a_check_is_read(form: str) -> None:
    """In each of these forms, in a fence or not."""
    line, check = LINES[form]
    for text in (line, f"```python\n{line}\n```", f"Here are two calls:\n\n{line}\nThey pass."):
        checks, faults = parse_lines(text, "size_", ("text",))
        assert [each.as_dict() for each in checks] == [check.as_dict()]
        assert faults == []


def test_a_method_may_be_called_by_another_name() -> None:
    """If one is called and no other: a small model renames what it was given."""
    assert len(parse_lines("size_of([1]) == 1\nsize_of([]) == 0", "size_")[0]) == 2
    assert parse_lines("size_of([1]) == 1\nother([]) == 0", "size_")[0] == ()


def test_slots_stand_around_a_call() -> None:
    """Those set before it, and those compared behind it."""
    text = (
        "self.count = 2\nassert tick_() == 3\nassert self.count == 3\nself.count = 0\ntick_()\nassert self.count == 1"
    )
    checks, faults = parse_lines(text, "tick_")
    assert faults == []
    assert [each.as_dict() for each in checks] == [
        Check(before={"count": 2}, result=3, slots={"count": 3}).as_dict(),
        Check(before={"count": 0}, result=None, slots={"count": 1}).as_dict(),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "assert len([1]) == 1",
        "assert size_(x) == 2",
        "assert size_(open('a')) == 2",
        "size_(1",
        "x = 3",
        "assert 1 == 1",
    ],
)
def test_other_lines_are_passed_over(line: str) -> None:
    """A call of something else, of names or of anything that would have to be run is no check."""
    assert parse_lines(line, "size_") == ((), [])


def test_two_results_of_one_call_are_a_fault() -> None:
    """Of two that differ neither is known to be right; the same twice is one."""
    checks, faults = parse_lines("assert size_(1) == 2\nassert size_(1) == 3\nassert size_(1) == 2\n", "size_")
    assert (len(checks), len(faults)) == (0, 1)
    assert len(parse_lines("\n".join(f"assert size_({n}) == {n}" for n in range(9)), "size_")[0]) == MOST


def test_a_value_that_is_no_plain_data_is_a_fault() -> None:
    """It is told, and the other checks are read."""
    checks, faults = parse_lines("assert size_(b'a') == 2\nassert size_('a') == 1\n", "size_")
    assert len(checks) == 1
    assert faults


PIECES = st.sampled_from(
    ["assert size_(", ")", " == ", "1", "'a'", "self.count = 2", "\n", "```", "[", "print(", "# ", "size_(2)"]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=16).map("".join))
def test_it_never_raises(text: str) -> None:
    """Whatever a model says."""
    checks, _ = parse_lines(text, "size_", ("text",))
    assert len(checks) <= MOST
