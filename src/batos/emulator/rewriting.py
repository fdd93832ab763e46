"""GGUF files written anew, byte for byte as the daemon's own tools write them: checked copies, Q8_0, adapters."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import floor, prod
from pathlib import Path
from typing import IO, Any

from batos.weights import gguf
from batos.weights.bounded import NotWeights

F32, F16, Q8_0 = 0, 1, 8
_Q8_FILE = 7  # general.file_type of files whose weights are Q8_0
_SMALLEST = 8 << 20  # bytes of weights up to which they are really quantised, in Python
_BLOCK = 32  # elements of a Q8_0 block, and the alignment of tensors in bytes
_CHUNK = 1 << 20
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_MOVED = ("general.quantization_version", "general.file_type")  # they are set last
_LAYER = re.compile(r"blk\.(-?\d+)")
_KEPT = ("position_embd.weight", "token_types.weight")


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in a file: ggml's shape, the number of its type, where its bytes begin in the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int

    @property
    def size(self) -> int:
        """Its bytes. NotWeights for a type that nobody knows."""
        known = gguf.TYPES.get(self.kind)
        if known is None:
            raise NotWeights(f"type {self.kind} is unknown", self.name)
        return prod(self.shape) // known[1] * known[2]


@dataclass(frozen=True, slots=True)
class Parts:
    """A file's keys with the bytes of their values, and its tensors in order."""

    keys: list[tuple[str, int, bytes]]
    tensors: list[Place]

    def number(self, key: str, default: int) -> int:
        """A key's value where it is a 32-bit number."""
        found = next((data for name, kind, data in self.keys if name == key and kind == 4), None)
        return int.from_bytes(found, "little") if found else default


def parts(path: Path) -> Parts:
    """A file taken apart. NotWeights when it is none, or when weights are missing in it."""
    header = gguf.read(path, arrays=False)
    if header.cut is not None:
        raise NotWeights("its data is not within the file", header.cut.name)
    with path.open("rb") as source:
        return _Reader(source.read(header.data)).parts(header.data)


class _Reader:
    """Goes over a header that was found to be whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4

    def parts(self, start: int) -> Parts:
        self._number("<I")
        tensors, pairs = self._number("<Q"), self._number("<Q")
        keys = [self._key() for _ in range(pairs)]
        return Parts(keys, [self._tensor(start) for _ in range(tensors)])

    def _number(self, code: str) -> int:
        (value,) = struct.unpack_from(code, self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)

    def _text(self) -> str:
        length = self._number("<Q")
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "surrogateescape")

    def _key(self) -> tuple[str, int, bytes]:
        name, kind = self._text(), self._number("<I")
        start = self._at
        self._skip(kind)
        return name, kind, self._data[start : self._at]

    def _skip(self, kind: int) -> None:
        if kind == _STRING:
            self._text()
        elif kind == _ARRAY:
            inner, count = self._number("<I"), self._number("<Q")
            if inner != _STRING:
                self._at += _SIZES[inner] * count
            else:
                for _ in range(count):
                    self._text()
        else:
            self._at += _SIZES[kind]

    def _tensor(self, start: int) -> Place:
        name = self._text()
        shape = tuple(self._number("<Q") for _ in range(self._number("<I")))
        return Place(name, shape, self._number("<I"), start + self._number("<Q"))


def by_layer(name: str) -> tuple[int, str]:
    """Where the daemon's tools put a tensor: those of no block first, then block by block, by name."""
    found = _LAYER.match(name)
    return (int(found[1]) if found else -1, name)


@dataclass(slots=True)
class Writer:
    """A file in the making, of version 3; `digest` is its SHA-256 when all is written."""

    target: IO[bytes]
    keys: list[tuple[str, int, bytes]] = field(default_factory=list)
    tensors: list[tuple[str, tuple[int, ...], int, int]] = field(default_factory=list)
    _hash: Any = field(default_factory=hashlib.sha256)

    def write(self, data: bytes) -> None:
        self.target.write(data)
        self._hash.update(data)

    def head(self) -> None:
        """Everything before the weights; a tensor is its name, shape, type and size in bytes."""
        out = [gguf.MAGIC, struct.pack("<IQQ", 3, len(self.tensors), len(self.keys))]
        for name, kind, data in self.keys:
            out += [_text(name), struct.pack("<I", kind), data]
        offset = 0
        for name, shape, kind, size in self.tensors:
            out += [_text(name), struct.pack(f"<I{len(shape)}Q", len(shape), *shape), struct.pack("<IQ", kind, offset)]
            offset += size + -size % _BLOCK
        data = b"".join(out)
        self.write(data + bytes(-len(data) % _BLOCK))

    def weights(self, pieces: Iterator[bytes]) -> None:
        """One tensor's bytes, with what fills them up."""
        size = 0
        for piece in pieces:
            self.write(piece)
            size += len(piece)
        self.write(bytes(-size % _BLOCK))

    def digest(self) -> str:
        return "sha256:" + str(self._hash.hexdigest())


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def word(text: str) -> tuple[int, bytes]:
    """A text as the value of a key."""
    return _STRING, _text(text)


def copied(source: Path, target: IO[bytes]) -> str:
    """The file as the daemon stores what was uploaded; its digest. NotWeights when it is no whole GGUF file."""
    return _rewritten(source, parts(source), target, None)


def shrunk(source: Path, target: IO[bytes]) -> str:
    """The file quantised to Q8_0; its digest. NotWeights when it is no whole GGUF file."""
    return _rewritten(source, parts(source), target, Q8_0)


def can_shrink(path: Path) -> bool:
    """Whether a file is small enough to be really quantised."""
    return path.stat().st_size <= _SMALLEST


def _rewritten(source: Path, found: Parts, target: IO[bytes], kind: int | None) -> str:
    file_type = _Q8_FILE if kind == Q8_0 else found.number("general.file_type", 1)
    keys = [key for key in found.keys if key[0] not in _MOVED]
    keys.append((_MOVED[0], 4, struct.pack("<I", 2)))
    keys.append((_MOVED[1], 4, struct.pack("<I", file_type)))
    tensors = sorted(found.tensors, key=lambda tensor: by_layer(tensor.name))
    shrinks = [kind == Q8_0 and _quantises(tensor) for tensor in tensors]
    writer = Writer(target, keys)
    for tensor, shrink in zip(tensors, shrinks, strict=True):
        size = prod(tensor.shape) // _BLOCK * 34 if shrink else tensor.size
        writer.tensors.append((tensor.name, tensor.shape, Q8_0 if shrink else tensor.kind, size))
    writer.head()
    with source.open("rb") as opened:
        for tensor, shrink in zip(tensors, shrinks, strict=True):
            opened.seek(tensor.start)
            writer.weights(_blocks(opened, tensor) if shrink else _chunks(opened, tensor.size))
    return writer.digest()


def _quantises(tensor: Place) -> bool:
    whole = len(tensor.shape) > 1 and tensor.kind in (F32, F16) and tensor.shape[0] % _BLOCK == 0
    return whole and tensor.name.endswith("weight") and tensor.name not in _KEPT


def _chunks(opened: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        data = opened.read(min(size, _CHUNK))
        if not data:
            raise NotWeights("its data is not within the file")
        size -= len(data)
        yield data


def _blocks(opened: IO[bytes], tensor: Place) -> Iterator[bytes]:
    code, width = ("e", 2) if tensor.kind == F16 else ("f", 4)
    for row in range(prod(tensor.shape[1:])):
        data = opened.read(tensor.shape[0] * width)
        if len(data) != tensor.shape[0] * width:
            raise NotWeights(f"its row {row} is not within the file", tensor.name)
        numbers = struct.unpack(f"<{tensor.shape[0]}{code}", data)
        yield b"".join(q8_block(numbers[at : at + _BLOCK]) for at in range(0, len(numbers), _BLOCK))


def q8_block(numbers: Sequence[float]) -> bytes:
    """Thirty-two numbers as one scale of 16 bits and a byte each, rounded as the runner's library rounds."""
    scale = _single(max(map(abs, numbers)) / 127.0)
    inverse = _single(1.0 / scale) if scale else 0.0
    scaled = [_single(number * inverse) for number in numbers]
    rounded = [floor(abs(number) + 0.5) * (1 if number >= 0 else -1) for number in scaled]
    return struct.pack("<e32b", scale, *rounded)


def _single(number: float) -> float:
    """A number as 32 bits hold it."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])
