"""The head of a file, taken piece by piece."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files.bounded import Head, NotWeights

U64 = struct.Struct("<Q")


@given(data=st.binary(min_size=1, max_size=64), cuts=st.lists(st.integers(0, 9), max_size=12))
def test_pieces_are_the_file(reused_folder: Path, data: bytes, cuts: list[int]) -> None:
    """Whatever is taken, in pieces of any size, is the file from its beginning, or NotWeights where it ends."""
    path = reused_folder / "head"
    path.write_bytes(data)
    with path.open("rb") as source:
        head = Head(source, 1 << 20)
        taken = b""
        for cut in cuts:
            if head.at + cut > len(data):
                with pytest.raises(NotWeights, match="ends too early"):
                    head.take(cut)
                return
            taken += head.take(cut)
            assert head.at == len(taken)
        assert data.startswith(taken)


def test_no_more_is_read_than_was_allowed(tmp_path: Path) -> None:
    """A file that is longer than the bound is read up to it, byte for byte, and not beyond; going past counts too."""
    path = tmp_path / "head"
    path.write_bytes(bytes(range(100)))
    with path.open("rb") as source:
        head = Head(source, 50)
        assert head.take(42) == bytes(range(42))
        assert head.number(U64, "key") == U64.unpack(bytes(range(42, 50)))[0]
        with pytest.raises(NotWeights, match="more than 50 bytes") as told:
            head.skip(1, "key")
        assert told.value.where == "key"
        assert source.tell() == 50


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    """What was there when the file was opened and is gone when it is wanted is no end without a word."""
    path = tmp_path / "head"
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as source:
        head = Head(source, 1 << 20)
        head.take(1)
        path.write_bytes(b"")
        with pytest.raises(NotWeights, match="ends too early"):
            head.take(1 << 19)
