"""Writing a GGUF file."""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import gguf
from model_files.gguf import TensorSource, write

values = st.text(max_size=9) | st.integers(0, 2**32 - 1) | st.floats(width=32, allow_nan=False, allow_infinity=False)
names = st.text("abc.", min_size=1, max_size=6)
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)


@settings(deadline=None)
@given(
    metadata=st.dictionaries(names.map("key.{}".format), values, max_size=4),
    tensors=st.dictionaries(names, shapes, max_size=4),
)
def test_what_is_written_is_read(
    reused_folder: Path,
    metadata: dict[str, str | int | float],
    tensors: dict[str, tuple[int, ...]],
) -> None:
    """Keys, values, names, shapes and the bytes of each tensor, which lie where the header says."""
    path = reused_folder / "written.gguf"
    path.unlink(missing_ok=True)
    contents = {name: bytes([number + 1]) * (2 * prod(shape)) for number, (name, shape) in enumerate(tensors.items())}
    sources = [
        TensorSource(name, "F16", shape, len(contents[name]), [contents[name][:3], contents[name][3:]])
        for name, shape in tensors.items()
    ]
    write(path, list(metadata.items()), sources)
    header = gguf.read(path)
    assert {
        key: struct.pack("<f", value) if isinstance(value, float) else value for key, value in metadata.items()
    } == {
        key: struct.pack("<f", value) if isinstance(value, float) else value for key, value in header.metadata.items()
    }
    assert {tensor.name: tensor.shape for tensor in header.tensors} == tensors
    assert header.cut is None
    data = path.read_bytes()
    for tensor in header.tensors:
        start = header.data + tensor.offset
        assert start % 32 == 0
        assert data[start : start + len(contents[tensor.name])] == contents[tensor.name]


def test_a_tensor_that_is_not_as_long_as_it_was_said_is_no_file(tmp_path: Path) -> None:
    """What lies behind it would be found in the wrong place."""
    with pytest.raises(ValueError, match="3 bytes instead of 8"):
        write(tmp_path / "a.gguf", [], [TensorSource("t", "F32", (2,), 8, [b"abc"])])


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """A file that is there is somebody's."""
    (tmp_path / "a.gguf").write_text("mine")
    with pytest.raises(FileExistsError):
        write(tmp_path / "a.gguf", [], [])
