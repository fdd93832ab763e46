"""Ids of commits and objects: what is formatted is read back, and anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.image.ids import oid_text, serial_of, tid_text


@given(st.binary(min_size=8, max_size=8))
def test_an_id_is_read_back(serial: bytes) -> None:
    """Of a commit and of an object."""
    assert serial_of(tid_text(serial)) == serial_of(oid_text(serial)) == serial


@pytest.mark.parametrize("text", ["", "tid:", "tid:0x", "oid:0xyz", "m-01"])
def test_other_text_is_no_id(text: str) -> None:
    """The reader decides what it says then."""
    with pytest.raises(ValueError):
        serial_of(text)


def test_a_number_of_more_than_eight_bytes_is_too_big() -> None:
    """No object has it."""
    with pytest.raises(OverflowError):
        serial_of("oid:0x1" + "0" * 16)
