"""Read the header of a GGUF file, and write such a file from tensors whose bytes are supplied in pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, prod
from pathlib import Path
from typing import Any

from model_files.bounded import Head, NotWeights

MAGIC = b"GGUF"
#: Bounds of a header. The largest in use (a vocabulary of 262,144 pieces with its merges) has 16 MB, 1.3 million
#: elements, 60 keys and 2,000 tensors.
HEADER_BYTES = 64 << 20
ELEMENTS = 1 << 21
KEYS = 1 << 14
TENSORS = 1 << 16
NAME_BYTES = 1 << 12
DIMENSIONS = 4

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_FLOAT, _STRING, _ARRAY = 6, 8, 9
_ALIGNMENT = 32

#: Type of a tensor's elements by number: name, elements a block, bytes a block.
TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
#: `general.file_type` by number: the type of most of the weights.
FILE_TYPES: Mapping[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    32: "BF16",
}


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor in a GGUF file; `size` is in bytes, None for an unknown type.

    `shape` is ggml's, with the inputs first; `offset` is in bytes from the beginning of the data.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    size: int | None

    @property
    def elements(self) -> int:
        """Return the number of its elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The header of a GGUF file: metadata by key, in the file's order, and tensors.

    An array is a list, or None if arrays were not read. `data` is the offset at which the weights begin, `size` the
    length of the file, both in bytes.
    """

    metadata: Mapping[str, Any]
    tensors: tuple[GgufTensor, ...]
    data: int
    size: int

    @property
    def parameters(self) -> int:
        """Return the number of elements of all tensors, the model's parameters."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def cut(self) -> GgufTensor | None:
        """Return the first tensor that does not lie within the file, which is then incomplete; None if all do."""
        ends = ((tensor, self.data + tensor.offset + (tensor.size or 0)) for tensor in self.tensors)
        return next((tensor for tensor, end in ends if end > self.size), None)


def read(path: Path, *, arrays: bool = True) -> GgufHeader:
    """Read the header of a file. Without `arrays` their values are None, so that a vocabulary takes no memory.

    Raises: NotWeights: the header is missing or malformed. OSError: the file is unreadable.
    """
    with path.open("rb") as source:
        return _GgufReader(Head(source, HEADER_BYTES), arrays).header()


class _GgufReader:
    """A reader of one header; `_elements` is the number of array elements that it may still read."""

    def __init__(self, head: Head, arrays: bool) -> None:
        self._head = head
        self._arrays = arrays
        self._elements = ELEMENTS

    def header(self) -> GgufHeader:
        head = self._head
        if head.size < 4 or head.take(4) != MAGIC:
            raise NotWeights("it does not begin with the letters GGUF")
        version = head.number(_U32, "version")
        if version not in (2, 3):
            swapped = version & 0xFFFF == 0
            said = "it is big-endian" if swapped else f"its version is {version}: 2 and 3 are in use"
            raise NotWeights(said, "version")
        tensors, pairs = head.number(_U64, "tensor count"), head.number(_U64, "key count")
        if tensors > TENSORS or pairs > KEYS:
            raise NotWeights(f"it claims {tensors} tensors and {pairs} keys", "counts")
        metadata: dict[str, Any] = {}
        for number in range(pairs):
            key = self._name(f"key {number + 1} of {pairs}")
            if key in metadata:
                raise NotWeights("it stands twice", key)
            metadata[key] = self._value(head.number(_U32, key), key)
        alignment = metadata.get("general.alignment", _ALIGNMENT)
        if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
            raise NotWeights(f"{alignment!r} is no power of two", "general.alignment")
        found = self._tensors(tensors)
        return GgufHeader(metadata, found, -(-head.at // alignment) * alignment, head.size)

    def _name(self, where: str) -> str:
        length = self._head.number(_U64, where)
        if not 0 < length <= NAME_BYTES:
            raise NotWeights(f"a name of {length} bytes", where)
        return self._head.take(length, where).decode("utf-8", "replace")

    def _text(self, where: str) -> str:
        length = self._head.number(_U64, where)
        if length > HEADER_BYTES:
            raise NotWeights(f"a text of {length} bytes", where)
        return self._head.take(length, where).decode("utf-8", "replace")

    def _value(self, kind: int, where: str) -> Any:
        if kind == _STRING:
            return self._text(where)
        if kind == _ARRAY:
            return self._array(where)
        if kind not in _SCALARS:
            raise NotWeights(f"a value of unknown type {kind}", where)
        return self._numbers(kind, 1, where)[0]

    def _array(self, where: str) -> list[Any] | None:
        kind, count = self._head.number(_U32, where), self._head.number(_U64, where)
        self._elements -= count
        if self._elements < 0:
            raise NotWeights(f"its arrays have more than {ELEMENTS} elements", where)
        if kind == _STRING:
            if self._arrays:
                return [self._text(where) for _ in range(count)]
            for _ in range(count):
                self._head.skip(min(self._head.number(_U64, where), HEADER_BYTES), where)
            return None
        if kind not in _SCALARS:
            raise NotWeights(f"an array of unknown type {kind}", where)
        if self._arrays:
            return self._numbers(kind, count, where)
        self._head.skip(count * struct.calcsize(_SCALARS[kind]), where)
        return None

    def _numbers(self, kind: int, count: int, where: str) -> list[Any]:
        code = _SCALARS[kind]
        found = struct.unpack(f"<{count}{code}", self._head.take(count * struct.calcsize(code), where))
        return list(map(shortest, found)) if kind == _FLOAT else list(found)

    def _tensors(self, count: int) -> tuple[GgufTensor, ...]:
        found = tuple(map(self._tensor, range(count)))
        if len({tensor.name for tensor in found}) != count:
            raise NotWeights("two tensors have one name", "tensors")
        return found

    def _tensor(self, number: int) -> GgufTensor:
        name = self._name(f"tensor {number + 1}")
        number_here = partial(self._head.number, where=name)
        dimensions = number_here(_U32)
        if dimensions > DIMENSIONS:
            raise NotWeights(f"it has {dimensions} dimensions", name)
        shape = tuple(number_here(_U64) for _ in range(dimensions))
        kind, offset = number_here(_U32), number_here(_U64)
        if prod(shape) >> 63 or offset >> 63:
            raise NotWeights(f"its shape is {list(shape)}, its place {offset}", name)
        known = TYPES.get(kind)
        if known is None:
            return GgufTensor(name, f"type {kind}", shape, offset, None)
        label, block, size = known
        return GgufTensor(name, label, shape, offset, prod(shape) // block * size)


def shortest(number: float) -> float:
    """Return a 32-bit float as the number with the fewest digits that is the same in 32 bits.

    >>> shortest(struct.unpack("<f", struct.pack("<f", 0.1))[0])
    0.1
    """
    if not isfinite(number) or number == int(number):
        return number
    exact = struct.pack("<f", number)
    for digits in (6, 7, 8):
        rounded = float(f"{number:.{digits}g}")
        if struct.pack("<f", rounded) == exact:
            return rounded
    return float(f"{number:.9g}")


_VERSION = 3
_NUMBERS = {name: number for number, (name, _, _) in TYPES.items()}
_KIND_U32, _F32, _TEXT = 4, 6, 8


@dataclass(frozen=True, slots=True)
class TensorSource:
    """A tensor to write: its name, type and shape in GGUF (inputs first), its size in bytes, and its bytes."""

    name: str
    type: str
    shape: tuple[int, ...]
    size: int
    pieces: Iterable[bytes]


def write(target: Path, metadata: Sequence[tuple[str, str | int | float]], tensors: Sequence[TensorSource]) -> None:
    """Write a GGUF file. A value of `metadata` is a text, a 32-bit integer or a 32-bit float.

    Raises: OSError: the file cannot be written.
    """
    head = bytearray(MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), len(metadata)))
    for key, value in metadata:
        head += _text(key) + _value(value)
    offset = 0
    for tensor in tensors:
        head += _text(tensor.name) + struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        head += struct.pack("<IQ", _NUMBERS[tensor.type], offset)
        offset += tensor.size + _padding(tensor.size)
    with target.open("xb") as file:
        file.write(head + b"\0" * _padding(len(head)))
        for tensor in tensors:
            written = sum(map(file.write, tensor.pieces))
            if written != tensor.size:
                raise ValueError(f"{tensor.name}: {written} bytes instead of {tensor.size}")
            file.write(b"\0" * _padding(tensor.size))


def _value(value: str | float) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", _KIND_U32, value)
    return struct.pack("<If", _F32, value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padding(size: int) -> int:
    return -size % _ALIGNMENT
