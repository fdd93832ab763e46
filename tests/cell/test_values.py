"""Plain data: what crosses is exact, and what is not is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.cell.lowering.statement_lowering import is_allowed_selector, is_allowed_slot
from batos.cell.values import MARK, Ref, decode, differences, encode, plain, same
from batos.protocol.errors import MethodFailed

LIMIT = 1 << 20
LEAVES = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
REFS = st.integers(1, 100).map(Ref)
VALUES = st.recursive(
    LEAVES | TEXTS | REFS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(lambda key: key != MARK), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_encoded_comes_back_the_same(value: Any) -> None:
    """In value and type, with the marks of objects."""
    text = encode(value, "it", LIMIT)
    text.encode("ascii")
    assert same(decode(text, "it", LIMIT), value)


@given(st.text(max_size=60) | VALUES.map(lambda value: encode(value, "it", LIMIT)[:-1]))
def test_decoding_gives_plain_data_or_fails(text: str) -> None:
    """No text of a cell's making is anything else."""
    try:
        found = decode(text, "it", LIMIT)
    except MethodFailed:
        return
    assert same(plain(found, "it", refs=True), found)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "1e999",
        '"\\ud800"',
        '{"\\ud800": 1}',
        "[" * 5000 + "]" * 5000,
        "9" * 5000,
        "1" * 700,
        "[1,]",
        "",
    ],
)
def test_what_is_no_strict_json_fails(text: str) -> None:
    """Not a number, half a surrogate pair, too deep, too large, or not JSON at all."""
    with pytest.raises(MethodFailed, match="it "):
        decode(text, "it", LIMIT)


def test_length_is_bounded_both_ways() -> None:
    """One character too many does not cross."""
    assert encode("x" * 8, "it", 10)
    for wrong in (
        lambda: encode("x" * 9, "it", 10),
        lambda: decode('"123456789"', "it", 10),
        lambda: decode(3, "it", 10),
    ):
        with pytest.raises(MethodFailed):
            wrong()


class Sly(str):
    """A text that is not exactly a str."""


@pytest.mark.parametrize(
    "value", [Sly("x"), {1: 2}, {Sly("k"): 1}, b"x", object(), {MARK: 1}, [float("nan")], 1 << 4000]
)
def test_only_exact_types_are_plain(value: Any) -> None:
    """A subclass, a key that is no text, a number without end: each is refused with its reason."""
    with pytest.raises(MethodFailed, match="only plain data crosses"):
        plain(value, "it")


def test_a_mark_is_data_only_where_it_may_be() -> None:
    """Arguments have none; a cycle is found, a value that occurs twice is not one."""
    with pytest.raises(MethodFailed, match="Ref"):
        plain([Ref(1)], "it")
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(MethodFailed, match="holds itself"):
        plain(ring, "it")
    twice = [1]
    assert plain([twice, twice], "it") == [[1], [1]]


@given(VALUES, VALUES)
def test_sameness_is_of_value_and_type(one: Any, other: Any) -> None:
    """Two values are the same exactly when their JSON with sorted keys is."""

    def text(value: Any) -> str:
        return json.dumps(json.loads(encode(value, "it", LIMIT)), sort_keys=True)

    if 0.0 not in (one, other):  # 0.0 and -0.0 are equal and written differently
        assert same(one, other) == (text(one) == text(other)) or "-0.0" in text(one) + text(other)


def test_differences_are_new_and_other_values() -> None:
    """True is not 1, 1.0 is not 1; the order of keys is nothing."""
    before: dict[str, Any] = {"a": 1, "b": {"x": 1, "y": 2}, "c": [1]}
    after: dict[str, Any] = {"a": True, "b": {"y": 2, "x": 1}, "c": [1.0], "d": None}
    assert differences(before, after) == {"a": True, "c": [1.0], "d": None}


@given(st.text(max_size=30))
def test_a_name_that_is_allowed_is_an_ascii_word(name: str) -> None:
    """Whatever the text, a slot or selector that passes has no underscore in front and nothing but ASCII."""
    if is_allowed_selector(name):
        assert is_allowed_slot(name)
    if is_allowed_slot(name):
        assert name.isascii()
        assert name.isidentifier()
        assert not name.startswith("_")


def test_selectors_of_the_kernel_are_told_from_those_of_methods() -> None:
    """Its verbs are refused alone or with what they work on; a word that merely begins so is a method's own."""
    refused = (
        "install_method_",
        "installMethod",
        "compile_",
        "exec_",
        "eval_",
        "set_parent_",
        "approve_",
        "parent",
        "the_guardian_",
    )
    allowed = (
        "infer_",
        "compile_report_",
        "evaluate_",
        "parent_greeting",
        "grant_wish_",
        "installed_apps_",
        "approves",
    )
    assert [name for name in refused if is_allowed_selector(name)] == []
    assert [name for name in allowed if not is_allowed_selector(name)] == ["approves"]
