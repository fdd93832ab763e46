"""Checks as a reply gives them: read strictly, compared by value, and worth nothing if doing nothing passes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.methods.generation.method_checks import GONE, Check, CheckText, equal, parse, weaknesses
from batos.protocol.errors import UsageError

SLOT = st.from_regex(r"[a-z][a-z_]{0,8}[a-z]", fullmatch=True)
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def text(**fields: str) -> CheckText:
    """A check as a reply has it; what is not given is empty."""
    # As the bounds of its texts are the grammar's, what stands in them is read whatever its length.
    empty: dict[str, Any] = dict.fromkeys(("arguments", "before", "replies", "slots"), "")
    return CheckText.model_construct(None, **{**empty, "result": "null", **fields})


@given(
    st.lists(PLAIN, max_size=3),
    st.dictionaries(SLOT, PLAIN, max_size=3),
    PLAIN,
    st.dictionaries(SLOT, PLAIN, max_size=2),
)
def test_what_is_written_as_json_is_read(
    arguments: list[Any], before: dict[str, Any], result: Any, slots: dict[str, Any]
) -> None:
    """Any plain data that a coder writes as JSON is the check's; and a check is kept and read back as it is."""
    written = {
        "arguments": arguments,
        "before": before,
        "replies": {"infer_": [result]},
        "result": result,
        "slots": slots,
    }
    (check,), faults = parse([text(**{name: json.dumps(value) for name, value in written.items()})])
    assert faults == []
    assert check.as_dict() == written
    assert Check.from_dict(json.loads(json.dumps(check.as_dict()))) == check


@pytest.mark.parametrize(
    ("field", "written", "said"),
    [
        ("arguments", '{"a": 1}', "must be JSON of a list"),
        ("arguments", "why?", "JSON is broken"),
        ("arguments", "[NaN]", "NaN, which is not a number"),
        ("arguments", "[" * 100_000, "nested too deep"),
        ("arguments", '["\\ud800"]', "half a surrogate pair"),
        ("before", "[]", "must be JSON of an object"),
        ("before", '{"_slots": 1}', "can be no slot"),
        ("before", '{"a b": 1}', "can be no slot"),
        ("before", '{"a": 1, "a": 2}', "gives a key twice"),
        ("replies", '{"infer_": "yes"}', "a list of answers"),
        ("result", "", "`result` is empty"),
        ("slots", '{"parent*": 1}', "can be no slot"),
    ],
)
def test_what_is_no_check_is_a_fault(field: str, written: str, said: str) -> None:
    """Each field that is not what it has to be is told, with the number of its check; nothing is guessed."""
    checks, faults = parse([text(), text(**{field: written})])
    assert len(checks) == 1
    (fault,) = faults
    assert fault.startswith("check 2: its ")
    assert said in fault


def test_every_fault_of_every_check_is_told() -> None:
    """A reply that is wrong in several places hears of all of them at once."""
    _, faults = parse([text(arguments="x", result=""), text(slots="x")])
    assert len(faults) == 3


@given(PLAIN)
def test_a_value_is_like_itself_and_a_whole_number_like_its_float(value: Any) -> None:
    """A value equals what JSON makes of it; 1 is 1.0, and neither is True."""
    assert equal(value, json.loads(json.dumps(value)))
    assert equal(1, 1.0)
    assert equal(0.1 + 0.2, 0.3)
    assert not equal(1, True)
    assert not equal(0, False)
    assert not equal([1], [1, 1])
    assert not equal({"a": 1}, {"b": 1})
    assert not equal(10**400, 1.0)


@pytest.mark.parametrize(
    ("check", "tells"),
    [
        (Check(), False),
        (Check(result="x"), True),
        (Check(before={"count": 1}, slots={"count": 1}), False),
        (Check(before={"count": 1}, slots={"count": 2}), True),
        (Check(slots={"count": 0}), True),
        (Check(before={"count": 1}, slots={"count": dict(GONE)}), True),
        (Check(slots={"count": dict(GONE)}), False),
    ],
)
def test_a_check_tells_a_method_from_one_that_does_nothing(check: Check, tells: bool) -> None:
    """A check tells exactly if returning None and leaving its slots alone would fail it."""
    assert check.tells is tells
    assert bool(check.faults(None, check.before)) is tells


def test_what_came_of_a_call_is_compared_with_what_was_to_come() -> None:
    """Result, slots that changed, slots that are missing and slots that should be gone are each a fault of its own."""
    check = Check(result=3, slots={"count": 1, "seen": True, "old": dict(GONE)})
    faults = check.faults("3", {"count": 2, "old": 0})
    assert [fault.split(",")[0] for fault in faults] == [
        'it returned "3"',
        "the slot `count` is 2 afterwards",
        "there is no slot `seen` afterwards; it must be true",
        "the slot `old` is still there",
    ]
    assert check.faults(3, {"count": 1, "seen": True}) == []


def test_checks_that_doing_nothing_passes_are_weak() -> None:
    """At least two checks must tell, and each slot that is written must be compared by one."""
    telling = Check(result=1)
    assert weaknesses([telling, telling], []) == []
    assert weaknesses([telling, telling, Check()], []) == []
    (few,) = weaknesses([telling, Check()], [])
    assert few.startswith("1 of its 2 checks fail")
    (blind,) = weaknesses([telling, telling], ["count", "seen"])
    assert "`count`, `seen`" in blind
    assert weaknesses([telling, Check(slots={"count": 1, "seen": True})], ["count", "seen"]) == []


@pytest.mark.parametrize("written", [{"result": 1, "reply": 2}, {"arguments": 1}, {"slots": {"_x": 1}}])
def test_a_persons_check_that_is_none_is_refused(written: dict[str, Any]) -> None:
    """What a person gives as a check is read as strictly, and the error names the field."""
    with pytest.raises(UsageError) as caught:
        Check.from_dict(written)
    assert caught.value.field == "checks"
