"""Checks in a wish: calls with their results, in its examples or its text, and of this method alone."""

from __future__ import annotations

import pytest
from tests.methods.generation.generation_setup import wish

from batos.methods.generation.coder_replies import wish_checks
from batos.methods.generation.method_checks import Check

TWO = [Check([[1, 2]], result=3).as_dict(), Check([[]], result=0).as_dict()]


@pytest.mark.parametrize(
    ("text", "examples"),
    [
        ("Add up.", ("add_up_([1, 2]) == 3", "add_up_([]) == 0")),
        ("Add up.", ("add_up([1, 2]) -> 3", "assert add_up_(items=[]) == 0")),
        ("Add up:\n>>> add_up_([1, 2])\n3\n>>> add_up_([])\n0\n", ()),
        ("Add up.\nadd_up_([1, 2]) == 3", ("add_up_([]) == 0", "length([1]) == 1", "Add the visitors.")),
    ],
)
def test_a_wish_has_checks(text: str, examples: tuple[str, ...]) -> None:
    """In each form in which a call and its result are written; the call of another name is none."""
    assert [each.as_dict() for each in wish_checks(wish(text=text, examples=examples))] == TWO


@pytest.mark.parametrize("example", ["How do I add up?", "add_up_(items)", "total([1]) == 1", "add_up_([1]) == one"])
def test_other_examples_are_none(example: str) -> None:
    """A question, a call without a value, and another function."""
    assert wish_checks(wish(examples=(example,))) == ()


def test_a_facet_has_none() -> None:
    """It answers in words that no example can know."""
    assert wish_checks(wish(kind="facet", examples=("add_up_([1, 2]) == 3",))) == ()


def test_a_wish_that_contradicts_itself_has_none() -> None:
    """Of two results of one call neither is known to be right."""
    assert wish_checks(wish(examples=("add_up_([1]) == 1", "add_up_([1]) == 2"))) == ()
