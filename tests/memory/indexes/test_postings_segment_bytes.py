"""The bytes of a segment: what is packed comes back, and nothing else is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.indexes.postings import number_bytes, pack, read_numbers, unpack
from batos.protocol.errors import IndexDamaged

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
    written = number_bytes("<i8", np.array(numbers, np.int64))
    assert read_numbers("<i8", memoryview(written)).tolist() == numbers
    with pytest.raises(IndexDamaged):
        read_numbers("<i8", memoryview(written + b"x"))
