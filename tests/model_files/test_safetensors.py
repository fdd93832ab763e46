"""The header of a safetensors file."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model_files.building import MODELS, raw_safetensors, safetensors

from model_files.bounded import NotWeights
from model_files.safetensors import HEADER_BYTES, SafetensorsHeader, SafetensorsTensor, read

SHAPES = {"a": (4, 64), "b": (64, 4)}


def written(folder: Path, data: bytes) -> Path:
    path = folder / "a.safetensors"
    path.write_bytes(data)
    return path


def raw(header: Any, data: int = 0) -> bytes:
    return raw_safetensors(json.dumps(header).encode(), data)


def test_a_header_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Tensors have their type and shape by name; the file's own metadata is apart from them."""
    header = read(written(tmp_path, safetensors(SHAPES, metadata={"format": "pt"})))
    assert header.tensors == {"a": SafetensorsTensor("F32", (4, 64)), "b": SafetensorsTensor("F32", (64, 4))}
    assert header.metadata == {"format": "pt"}


def test_files_of_a_real_tool_are_read() -> None:
    """The adapters that a real daemon converted are read."""
    for path in sorted(MODELS.glob("peft/*/*.safetensors")):
        header = read(path)
        assert len(header.tensors) == 8
        assert {tensor.dtype for tensor in header.tensors.values()} == {"F32"}


def test_no_tensor_at_all_is_a_file(tmp_path: Path) -> None:
    """A file may hold nothing."""
    assert read(written(tmp_path, raw({}))).tensors == {}


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
WRONG: list[tuple[bytes, str]] = [
    (b"", "only 0 bytes"),
    (b"1234567", "only 7 bytes"),
    (struct.pack("<Q", 1 << 63), "claims"),
    (struct.pack("<Q", HEADER_BYTES + 1), "claims"),
    (struct.pack("<Q", 90) + b"{}", "ends too early"),
    (raw_safetensors(b"{", 0), "no JSON"),
    (raw_safetensors(b"\xff\xfe", 0), "no JSON"),
    (raw_safetensors(b"[" * 100_000, 0), "no JSON"),
    (raw_safetensors(b'{"a": ' + b"9" * 5000 + b"}", 0), "no JSON"),
    (raw([]), "no JSON object"),
    (raw({"__metadata__": []}), "__metadata__"),
    (raw({"__metadata__": {"a": 1}}), "object of texts"),
    (raw_safetensors(b'{"a": 1, "a": 2}', 0), "stands twice"),
    (raw({"a": 1}), "lacks dtype"),
    (raw({"a": {"dtype": "F32", "shape": [1]}}), "lacks dtype"),
    (raw({"a": {**ONE, "dtype": 7}}, 8), "are none"),
    (raw({"a": {**ONE, "shape": [2.0]}}, 8), "are none"),
    (raw({"a": {**ONE, "shape": [True]}}, 8), "are none"),
    (raw({"a": {**ONE, "shape": [-2]}}, 8), "are none"),
    (raw({"a": {**ONE, "data_offsets": [0]}}, 8), "are none"),
    (raw({"a": {**ONE, "data_offsets": [0, 1 << 70]}}, 8), "are none"),
    (raw({"a": {**ONE, "dtype": "Q4_K"}}, 8), "is unknown"),
    (raw({"a": {**ONE, "shape": [1] * 9}}, 8), "9 dimensions"),
    (raw({"a": {**ONE, "shape": [3]}}, 8), "cannot lie"),
    (raw({"a": ONE}, 7), "was cut"),
    (raw({"a": ONE}, 9), "belong to no tensor"),
    (raw({"a": {**ONE, "data_offsets": [8, 16]}}, 16), "instead of 0"),
    (raw({"a": ONE, "b": {**ONE, "data_offsets": [12, 20]}}, 20), "those of a end at 8"),
    (raw({"a": ONE, "b": {**ONE, "data_offsets": [4, 12]}}, 12), "those of a end at 8"),
]


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_what_is_no_safetensors_file_says_why(tmp_path: Path, data: bytes, said: str) -> None:
    """Each way of being wrong is told, with the tensor at which it is."""
    with pytest.raises(NotWeights, match=said):
        read(written(tmp_path, data))


def test_a_hostile_header_takes_little_memory(tmp_path: Path) -> None:
    """A file that claims an endless header is refused before anything is made room for."""
    path = written(tmp_path, struct.pack("<Q", 1 << 62) + b" " * 100)
    tracemalloc.start()
    with pytest.raises(NotWeights):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()


def told(folder: Path, data: bytes) -> SafetensorsHeader | NotWeights:
    try:
        return read(written(folder, data))
    except NotWeights as error:
        return error


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["dtype", "shape", "a"]), inner),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "F16", "I64", "BOOL", "F4", "x"]) | json_values,
        "shape": st.lists(st.integers(-1, 5), max_size=3) | json_values,
        "data_offsets": st.lists(st.integers(-1, 40), min_size=2, max_size=2) | json_values,
    },
)


@settings(max_examples=100, deadline=None)
@given(header=st.dictionaries(st.text(max_size=3), entries | json_values, max_size=3), data=st.integers(0, 40))
def test_any_header_is_one_or_refused(reused_folder: Path, header: dict[str, Any], data: int) -> None:
    """No JSON makes anything but a header or NotWeights."""
    assert isinstance(told(reused_folder, raw(header, data)), SafetensorsHeader | NotWeights)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), length=st.integers(0, 300))
def test_any_bytes_are_a_header_or_refused(reused_folder: Path, data: bytes, length: int) -> None:
    """No bytes make anything but a header or NotWeights."""
    folder = reused_folder
    assert isinstance(told(folder, data), SafetensorsHeader | NotWeights)
    assert isinstance(told(folder, struct.pack("<Q", length) + data), SafetensorsHeader | NotWeights)
