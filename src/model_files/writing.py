"""Write a GGUF file: a header, and tensors whose bytes are supplied in pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from model_files.gguf import MAGIC, TYPES

_VERSION = 3
_ALIGNMENT = 32
_NUMBERS = {name: number for number, (name, _, _) in TYPES.items()}
_U32, _F32, _TEXT = 4, 6, 8


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
        return struct.pack("<II", _U32, value)
    return struct.pack("<If", _F32, value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padding(size: int) -> int:
    return -size % _ALIGNMENT
