"""JSON values of a file, one by one."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.reading.chats import BrokenLine, json_values
from batos.memory.reading.read_text import NotReadable

SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def values(data: bytes) -> list[Any]:
    """All values of these bytes."""
    return list(json_values(io.BytesIO(data)))


@given(given_=st.lists(VALUES, max_size=6), indent=st.sampled_from([None, 2]))
def test_elements_of_a_list_are_its_values(given_: list[Any], indent: int | None) -> None:
    """Whatever its layout, a list gives its elements."""
    assert values(json.dumps(given_, indent=indent).encode()) == given_


@given(given_=st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=6))
def test_lines_are_values(given_: list[Any]) -> None:
    """A value a line, blank lines between them left out."""
    assert values("\n\n".join(map(json.dumps, given_)).encode()) == given_


def test_values_longer_than_a_piece_are_whole() -> None:
    """A file is read in pieces, and a value may be longer than several of them."""
    long = ["lamp" * 200_000, 12345, {"a": "oil" * 300_000}]
    assert values(json.dumps(long).encode()) == long


def test_a_broken_line_leaves_the_others() -> None:
    """Its number is told in its place."""
    assert values(b'{"a": 1}\n{"a": \n{"a": 3}\n') == [{"a": 1}, BrokenLine(2), {"a": 3}]


def test_the_rest_of_a_broken_list_is_told() -> None:
    """Values before the break come first."""
    found = json_values(io.BytesIO(b'[{"a": 1}, {"a": '))
    assert next(found) == {"a": 1}
    with pytest.raises(NotReadable):
        next(found)


@given(data=st.binary(max_size=200))
def test_any_bytes_end_well(data: bytes) -> None:
    """Nothing but values and the one error come of it."""
    try:
        values(data)
    except NotReadable as error:
        assert str(error)
