"""The bytes of a segment: what is packed comes back, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.errors import IndexDamaged
from batos.memory.indexes.segment_bytes import (
    check_ascending,
    number_bytes,
    pack,
    read_numbers,
    read_texts,
    text_bytes,
    unpack,
)

KIND = b"test"


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_sections_come_back(sections: list[bytes]) -> None:
    """Sections are read as they were written; another number of them or another kind is refused."""
    segment = pack(KIND, sections)
    assert [bytes(section) for section in unpack(KIND, segment, len(sections))] == sections
    for kind, count in ((b"else", len(sections)), (KIND, len(sections) + 1)):
        with pytest.raises(IndexDamaged):
            unpack(kind, segment, count)


def test_another_version_is_told() -> None:
    """A segment of a later format is refused by its number."""
    segment = bytearray(pack(KIND, [b"a"]))
    segment[8] = 9
    with pytest.raises(IndexDamaged, match="format 9"):
        unpack(KIND, bytes(segment), 1)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_come_back(numbers: list[int]) -> None:
    """Numbers are read as they were written, and half a number is refused."""
    written = number_bytes("q", numbers)
    assert list(read_numbers("q", memoryview(written))) == numbers
    with pytest.raises(IndexDamaged):
        read_numbers("q", memoryview(written + b"x"))


@given(st.lists(st.text(st.characters(exclude_characters="\n"), min_size=1)))
def test_texts_come_back(found: list[str]) -> None:
    """Texts are read as they were written; another number of them, or bytes that are no text, are refused."""
    written = text_bytes(found)
    assert read_texts(memoryview(written), len(found)) == found
    for damaged, count in ((written, len(found) + 2), (b"\xff\xfe", 1), (b"x", 0)):
        with pytest.raises(IndexDamaged):
            read_texts(memoryview(damaged), count)


def test_numbers_in_order_are_let_pass() -> None:
    """Each is greater than the one before it and below the limit."""
    check_ascending([0, 1, 5], 6)
    check_ascending([])
    for numbers in ([1, 1], [2, 1], [0, 6]):
        with pytest.raises(IndexDamaged):
            check_ascending(numbers, 6)
