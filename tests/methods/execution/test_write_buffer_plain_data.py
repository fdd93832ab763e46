"""Slots as plain data: exact types, bounded, with objects as what they are."""

from __future__ import annotations

from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree, OOTreeSet
from hypothesis import given
from hypothesis import strategies as st
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.cell.values import same
from batos.methods.execution.write_buffer import (
    MOST_TEXT,
    MOST_VALUES,
    SizeBudget,
    check_size,
    data_of,
    is_record,
    matches,
    replace_leaves,
)
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import UvmObject
from batos.protocol.errors import MethodFailed

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_plain_data_is_copied_as_it_is(value: Any) -> None:
    """Equal in value and in type, and no container of it is the original's."""
    copy = data_of(value, "it")
    assert same(copy, value)
    assert not isinstance(value, list | dict) or copy is not value


def test_what_python_has_more_of_becomes_what_json_has() -> None:
    """Tuples, sets and the database's containers are lists and dictionaries; objects stay what they are."""
    friend = UvmObject()
    tree = OOBTree({"k": (1, friend)})
    found = data_of([(1, 2), {3, 1}, PersistentMapping({"a": PersistentList([1])}), tree, OOTreeSet(["z", "y"])], "it")
    assert found == [[1, 2], [1, 3], {"a": [1]}, {"k": [1, friend]}, ["y", "z"]]
    assert found[3]["k"][1] is friend


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"bytes", "holds a bytes"),
        (float("nan"), "holds a number out of bounds"),
        (2**4096, "holds a number out of bounds"),
        (1j, "holds a complex"),
        ({1: 2}, "a key that is a int"),
        (IOBTree({1: 2}), "holds a IOBTree"),
        (Intent("Sing."), "holds behaviour"),
        ([Method("a_", "")], "holds behaviour"),
        (Primitive("traits.log"), "holds behaviour"),
        ([None] * (MOST_VALUES + 1), "too large"),
        ("x" * (MOST_TEXT + 1), "too large"),
    ],
)
def test_what_is_none_is_named(value: Any, why: str) -> None:
    """The slot, and what it holds."""
    with pytest.raises(MethodFailed, match="the slot") as raised:
        data_of(value, "the slot 'a'")
    assert why in raised.value.message


@given(plain, plain)
def test_a_value_matches_its_copy_and_nothing_else(value: Any, other: Any) -> None:
    """As if both were copied and compared, type by type."""
    assert matches(value, data_of(value, "it"))
    assert matches(value, other) is same(value, other)


def test_containers_of_other_kinds_match_what_they_are_shown_as() -> None:
    """A tuple its list, a set its sorted list, the database's containers theirs; behaviour matches nothing."""
    friend = UvmObject()
    for value in ((1, (2,)), {3, 1}, PersistentMapping({"a": (friend,)}), OOTreeSet(["b", "a"])):
        assert matches(value, data_of(value, "it"))
    assert not matches(Intent("Sing."), None)
    assert not matches((friend,), [UvmObject()])


def test_bounds_are_for_all_that_is_shown_together() -> None:
    """Two slots that would do alone are too much together."""
    room = SizeBudget()
    data_of([0] * (MOST_VALUES // 2), "a", room)
    with pytest.raises(MethodFailed, match="b is too large"):
        data_of([0] * (MOST_VALUES // 2), "b", room)


def test_what_holds_itself_or_is_too_deep_is_refused() -> None:
    """No recursion without end."""
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(MethodFailed, match="nested more than 60 deep"):
            data_of(value, "it")


def test_leaves_are_replaced_wherever_they_are() -> None:
    """In lists and dictionaries, and as the value itself."""
    found = replace_leaves([1, {"a": [1, 2]}], lambda each: each * 10, lambda each: each == 1)
    assert found == [10, {"a": [10, 2]}]
    assert replace_leaves(1, str, lambda each: True) == "1"


@pytest.mark.parametrize(
    ("value", "record"), [(PersistentMapping(), True), (OOBTree(), True), ({}, False), ([], False)]
)
def test_the_kernels_containers_are_known(value: Any, record: bool) -> None:
    """A method reads them and replaces none."""
    assert is_record(value) is record


@given(st.lists(plain, max_size=4))
def test_what_fits_is_what_may_be_copied(value: list[Any]) -> None:
    """Both count alike, so what was found to fit is never refused as too large."""
    counted, copied = SizeBudget(), SizeBudget()
    check_size(value, "it", counted)
    data_of(value, "it", copied)
    assert (counted.values, counted.text) == (copied.values, copied.text)


@pytest.mark.parametrize(
    "value",
    [[0] * MOST_VALUES, [[0] * (MOST_VALUES // 2)] * 2, {"a": "x" * MOST_TEXT}, {"x" * (MOST_TEXT + 1): 0}],
)
def test_what_does_not_fit_is_not_walked_to_its_end(value: Any) -> None:
    """The loop looks at what a method gives back: of what is too large it sees no more than that."""
    with pytest.raises(MethodFailed, match="the result is too large"):
        check_size(value, "the result", SizeBudget())


def test_values_share_one_room() -> None:
    """Forty slots that are each just small enough are too large together."""
    room = SizeBudget()
    check_size([0] * (MOST_VALUES // 2), "a", room)
    with pytest.raises(MethodFailed, match="b is too large"):
        check_size([0] * (MOST_VALUES // 2), "b", room)
