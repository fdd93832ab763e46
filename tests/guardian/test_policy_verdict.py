"""A verdict is plain data that JSON keeps, and says whether its list of slots is whole."""

from __future__ import annotations

import json

import pytest

from batos.guardian.policy import UNLISTABLE, SlotUse, SourceFault, Verdict


def verdict(*rules: str) -> Verdict:
    faults = tuple(SourceFault(1, 2, rule, "why", "remedy") for rule in rules)
    return Verdict(not faults, faults, "p", "d", "go_", "self", slots=SlotUse(reads=frozenset({"b", "a"})))


def test_a_verdict_is_plain_data() -> None:
    """Every field comes through JSON, with its sets sorted."""
    told = verdict("covenant").as_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["slots"]["reads"] == ["a", "b"]
    assert told["faults"] == [{"line": 1, "column": 2, "rule": "covenant", "why": "why", "remedy": "remedy"}]


@pytest.mark.parametrize("rule", sorted(UNLISTABLE))
def test_what_cannot_be_listed_is_said(rule: str) -> None:
    """A source with a fault that hides slots has no list to run by; other faults leave the list whole."""
    assert not verdict("covenant", rule).listable
    assert verdict("covenant").listable


def test_a_fault_is_told_in_one_line() -> None:
    """In words a fault names its place, its rule, why, and what to write."""
    assert str(SourceFault(3, 4, "name", "it is hidden", "write another")) == (
        "line 3, column 4 [name]: it is hidden; write another"
    )
