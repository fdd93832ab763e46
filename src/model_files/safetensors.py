"""Read the header of a safetensors file: the names, types and shapes of its tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from model_files.bounded import Head, NotWeights

#: The most bytes of a header. An adapter of every projection of 126 blocks has 230 KB.
HEADER_BYTES = 4 << 20
DIMENSIONS = 8

_U64 = struct.Struct("<Q")
#: Bits of one element by its type's name.
DTYPES: Mapping[str, int] = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


@dataclass(frozen=True, slots=True)
class SafetensorsTensor:
    """A tensor in a safetensors file. Its bytes are those from `start` up to `end` in the file.

    `shape` is PyTorch's, with the rows (the outputs) first.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """The header of a safetensors file: tensors by name, and its metadata, texts by key."""

    tensors: Mapping[str, SafetensorsTensor]
    metadata: Mapping[str, str]


def read(path: Path) -> SafetensorsHeader:
    """Read the header of a complete file.

    Raises: NotWeights: the file is malformed or incomplete. OSError: the file is unreadable.
    """
    with path.open("rb") as source:
        head = Head(source, HEADER_BYTES + _U64.size)
        if head.size < _U64.size:
            raise NotWeights(f"it has only {head.size} bytes")
        length = head.number(_U64)
        if length > HEADER_BYTES:
            raise NotWeights(f"its header claims {length} bytes: at most {HEADER_BYTES} are read", "byte 0")
        text = head.take(length, "header")
        return _header(text, head.at, head.size)


def _header(text: bytes, at: int, size: int) -> SafetensorsHeader:
    """Parse the JSON of a header whose data begins at `at` in a file of `size` bytes."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except NotWeights:
        raise
    except (ValueError, RecursionError) as error:
        raise NotWeights(f"its header is no JSON: {error}", "header") from error
    if not isinstance(found, dict):
        raise NotWeights("its header is no JSON object", "header")
    metadata = found.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise NotWeights("it is no object of texts", "__metadata__")
    tensors, places = {}, []
    for name, value in found.items():
        tensors[name], place = _tensor(name, value, at)
        places.append(place)
    _check_places(sorted(places), size - at)
    return SafetensorsHeader(tensors, metadata)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict. Raises: NotWeights: a key is repeated."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotWeights("a name stands twice", "header")
    return found


def _tensor(name: str, value: Any, at: int) -> tuple[SafetensorsTensor, tuple[int, int, str]]:
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= value.keys():
        raise NotWeights("it lacks dtype, shape or data_offsets", name)
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or not _counts(shape) or not _counts(offsets) or len(offsets) != 2:
        raise NotWeights("its dtype, shape or data_offsets are none", name)
    if dtype not in DTYPES:
        raise NotWeights(f"its type {dtype[:20]!r} is unknown", name)
    start, end = offsets
    if len(shape) > DIMENSIONS:
        raise NotWeights(f"it has {len(shape)} dimensions", name)
    if (end - start) * 8 != prod(shape) * DTYPES[dtype]:
        raise NotWeights(f"a {dtype} of shape {shape} cannot lie in bytes {start} to {end}", name)
    return SafetensorsTensor(dtype, tuple(shape), at + start, at + end), (start, end, name)


def _counts(value: Any) -> bool:
    """Return whether a value is a list of integers from 0 up to 2**63."""
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 1 << 63 for each in value)


def _check_places(places: list[tuple[int, int, str]], data: int) -> None:
    """Check that the tensors follow one another without gaps and fill the file. Raises: NotWeights: they do not."""
    for before, after in pairwise(places):
        if before[1] != after[0]:
            raise NotWeights(f"its bytes begin at {after[0]}, those of {before[2]} end at {before[1]}", after[2])
    first, last = (places[0], places[-1]) if places else ((0, 0, ""), (0, 0, ""))
    if first[0] != 0:
        raise NotWeights(f"its bytes begin at {first[0]} instead of 0", first[2])
    if last[1] != data:
        how = "was cut" if last[1] > data else "has bytes at its end that belong to no tensor"
        raise NotWeights(f"the file {how}: its tensors take {last[1]} bytes and {data} are there", last[2])
