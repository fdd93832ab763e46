"""Reading a GGUF header: its metadata and the shapes of its tensors, never the weights."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

HEADER_BYTES = 256 << 20
MAGIC = b"GGUF"
NOT_GGUF = "supplied file was not in GGUF format"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 30: "BF16"}
FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    7: "Q8_0",
    14: "Q4_K_S",
    15: "Q4_K_M",
    17: "Q5_K_M",
    18: "Q6_K",
    32: "BF16",
}


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata by key in the order of the file, and each tensor's name, type and shape."""

    info: dict[str, Any]
    tensors: tuple[dict[str, Any], ...]

    @property
    def parameters(self) -> int:
        """The number of weights."""
        total = 0
        for tensor in self.tensors:
            count = 1
            for side in tensor["shape"]:
                count *= side
            total += count
        return total


class _Reader:
    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._left = HEADER_BYTES

    def take(self, size: int) -> bytes:
        self._left -= size
        data = self._source.read(size) if self._left >= 0 else b""
        if len(data) != size:
            raise ValueError(NOT_GGUF)
        return data

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.number("I"), self.number("Q")
            return [self.value(inner) for _ in range(count)]
        if kind == 6:
            return float(f"{self.number('f'):.7g}")
        if kind not in _SCALARS:
            raise ValueError(NOT_GGUF)
        return self.number(_SCALARS[kind])


def read(path: Path) -> Header:
    """The header of a GGUF file; ValueError with the daemon's text when it is none."""
    with path.open("rb") as source:
        reader = _Reader(source)
        if source.read(4) != MAGIC or reader.number("I") not in (2, 3):
            raise ValueError(NOT_GGUF)
        tensors, pairs = reader.number("Q"), reader.number("Q")
        info = {}
        for _ in range(pairs):
            key = reader.text()
            info[key] = reader.value(reader.number("I"))
        return Header(info, tuple(_tensor(reader) for _ in range(tensors)))


def _tensor(reader: _Reader) -> dict[str, Any]:
    name = reader.text()
    shape = [reader.number("Q") for _ in range(reader.number("I"))]
    kind = reader.number("I")
    reader.number("Q")  # where it starts
    return {"name": name, "type": _TYPES.get(kind, "F16"), "shape": shape}
