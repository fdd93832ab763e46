"""Write GGUF files as the daemon's tools do: checked copies, quantised files, and converted adapters."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import IO, Any

from model_files import gguf
from model_files.bounded import NotWeights
from ollama_emulator.library import quantizing
from ollama_emulator.library.quantizing import BLOCK, F16, F32

_SMALLEST = 8 << 20  # bytes of the largest file that is quantised, in Python
_CHUNK = 1 << 20
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_MOVED = ("general.quantization_version", "general.file_type")  # these keys are written last
_LAYER = re.compile(r"blk\.(-?\d+)")


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor in a file: its shape as in GGUF, the number of its type, and its offset in the file in bytes."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int

    @property
    def size(self) -> int:
        """Return its size in bytes, without padding. Raises: NotWeights: its type is unknown."""
        known = gguf.TYPES.get(self.kind)
        if known is None:
            raise NotWeights(f"type {self.kind} is unknown", self.name)
        return prod(self.shape) // known[1] * known[2]


@dataclass(frozen=True, slots=True)
class GgufParts:
    """The keys of a GGUF file with the types and bytes of their values, and its tensors in order."""

    keys: list[tuple[str, int, bytes]]
    tensors: list[TensorPlace]

    def number(self, key: str, default: int) -> int:
        """Return the value of a key if it is a 32-bit number, else `default`."""
        found = next((data for name, kind, data in self.keys if name == key and kind == 4), None)
        return int.from_bytes(found, "little") if found else default


def parts(path: Path) -> GgufParts:
    """Read the parts of a file. Raises: NotWeights: it is no GGUF file, or its weights are incomplete."""
    header = gguf.read(path, arrays=False)
    if header.cut is not None:
        raise NotWeights("its data is not within the file", header.cut.name)
    with path.open("rb") as source:
        return _HeaderWalk(source.read(header.data)).parts(header.data)


class _HeaderWalk:
    """A reader of a GGUF header that was already checked."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4

    def parts(self, start: int) -> GgufParts:
        self._number("<I")
        tensors, pairs = self._number("<Q"), self._number("<Q")
        keys = [self._key() for _ in range(pairs)]
        return GgufParts(keys, [self._tensor(start) for _ in range(tensors)])

    def _number(self, code: str) -> int:
        (value,) = struct.unpack_from(code, self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)

    def _text(self) -> str:
        length = self._number("<Q")
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "surrogateescape")

    def _key(self) -> tuple[str, int, bytes]:
        """Read a key of the header: its name, its kind, and its value as bytes."""
        name, kind = self._text(), self._number("<I")
        start = self._at
        self._skip(kind)
        return name, kind, self._data[start : self._at]

    def _skip(self, kind: int) -> None:
        """Go past a value of a type."""
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

    def _tensor(self, start: int) -> TensorPlace:
        name = self._text()
        shape = tuple(self._number("<Q") for _ in range(self._number("<I")))
        return TensorPlace(name, shape, self._number("<I"), start + self._number("<Q"))


def by_layer(name: str) -> tuple[int, str]:
    """Return the key by which the daemon's tools sort tensors: those of no block first, then by block and name."""
    found = _LAYER.match(name)
    return (int(found[1]) if found else -1, name)


@dataclass(slots=True)
class GgufWriter:
    """A GGUF file of version 3 while it is written, with its SHA-256."""

    target: IO[bytes]
    keys: list[tuple[str, int, bytes]] = field(default_factory=list)
    tensors: list[tuple[str, tuple[int, ...], int, int]] = field(default_factory=list)
    _hash: Any = field(default_factory=hashlib.sha256)

    def write(self, data: bytes) -> None:
        """Write bytes and add them to the digest."""
        self.target.write(data)
        self._hash.update(data)

    def head(self) -> None:
        """Write the header with `keys` and `tensors`; a tensor is given by name, shape, type and size in bytes."""
        out = [gguf.MAGIC, struct.pack("<IQQ", 3, len(self.tensors), len(self.keys))]
        for name, kind, data in self.keys:
            out += [_text(name), struct.pack("<I", kind), data]
        offset = 0
        for name, shape, kind, size in self.tensors:
            out += [_text(name), struct.pack(f"<I{len(shape)}Q", len(shape), *shape), struct.pack("<IQ", kind, offset)]
            offset += size + -size % BLOCK
        data = b"".join(out)
        self.write(data + bytes(-len(data) % BLOCK))

    def weights(self, pieces: Iterator[bytes]) -> None:
        """Write the bytes of the next tensor, with its padding."""
        size = 0
        for piece in pieces:
            self.write(piece)
            size += len(piece)
        self.write(bytes(-size % BLOCK))

    def digest(self) -> str:
        """Return the SHA-256 of the bytes written so far."""
        return "sha256:" + str(self._hash.hexdigest())


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def word(text: str) -> tuple[int, bytes]:
    """Return the type and the bytes of a string as a key's value."""
    return _STRING, _text(text)


def copy_file(source: Path, target: IO[bytes]) -> str:
    """Write an uploaded file to `target` as the daemon stores it; return its digest. Raises: NotWeights: as `parts`."""
    return _rewrite(source, parts(source), target, None)


def quantize_file(source: Path, target: IO[bytes], wanted: str) -> str:
    """Write a file quantised to `wanted`, such as Q4_K_M, and return its digest. Raises: NotWeights: as `parts`."""
    return _rewrite(source, parts(source), target, wanted)


def can_shrink(path: Path, wanted: str) -> bool:
    """Return whether the emulator can quantise a file: it is small enough, and all types are ones that it can write."""
    if path.stat().st_size > _SMALLEST:
        return False
    found = parts(path)
    changed = [(tensor.kind, kind) for tensor, kind in _plan_tensors(found, wanted) if tensor.kind != kind]
    return all(quantizing.can_write(kind) and before in (F16, F32) for before, kind in changed)


def _plan_tensors(found: GgufParts, wanted: str | None) -> list[tuple[TensorPlace, int]]:
    """Return the tensors in the order of the new file, each with its new type."""
    tensors = sorted(found.tensors, key=lambda tensor: by_layer(tensor.name))
    if wanted is None:
        return [(tensor, tensor.kind) for tensor in tensors]
    chosen = quantizing.kinds([(tensor.name, tensor.shape, tensor.kind) for tensor in tensors], wanted)
    return list(zip(tensors, chosen, strict=True))


def _rewrite(source: Path, found: GgufParts, target: IO[bytes], wanted: str | None) -> str:
    """Write a file anew, quantised if `wanted` names a type; return its digest."""
    file_type = quantizing.FILE_TYPES[wanted] if wanted else found.number("general.file_type", 1)
    keys = [key for key in found.keys if key[0] not in _MOVED]
    keys.append((_MOVED[0], 4, struct.pack("<I", 2)))
    keys.append((_MOVED[1], 4, struct.pack("<I", file_type)))
    planned = _plan_tensors(found, wanted)
    writer = GgufWriter(target, keys)
    for tensor, kind in planned:
        size = tensor.size if kind == tensor.kind else replace(tensor, kind=kind).size
        writer.tensors.append((tensor.name, tensor.shape, kind, size))
    writer.head()
    with source.open("rb") as opened:
        for tensor, kind in planned:
            opened.seek(tensor.start)
            same = kind == tensor.kind
            writer.weights(_chunks(opened, tensor.size) if same else _rows(opened, tensor, kind))
    return writer.digest()


def _chunks(opened: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield a file's next `size` bytes in pieces. Raises: NotWeights: the file ends before."""
    while size:
        data = opened.read(min(size, _CHUNK))
        if not data:
            raise NotWeights("its data is not within the file")
        size -= len(data)
        yield data


def _rows(opened: IO[bytes], tensor: TensorPlace, kind: int) -> Iterator[bytes]:
    """Yield the rows of a tensor, encoded in another type. Raises: NotWeights: the file ends too early."""
    code, width = ("e", 2) if tensor.kind == F16 else ("f", 4)
    for row in range(prod(tensor.shape[1:])):
        data = opened.read(tensor.shape[0] * width)
        if len(data) != tensor.shape[0] * width:
            raise NotWeights(f"its row {row} is not within the file", tensor.name)
        yield quantizing.encode_row(kind, struct.unpack(f"<{tensor.shape[0]}{code}", data))
