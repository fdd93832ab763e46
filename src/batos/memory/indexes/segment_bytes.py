"""The bytes of a segment: a header with a kind, a version and a checksum, then packed sections of numbers and words."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batos.protocol.errors import IndexDamaged

#: The version of the format; a segment of another one is refused, and is built again from its entries.
VERSION = 1
#: The most bytes that a segment may hold unpacked, so that a short damaged one does not fill the memory.
MOST_BYTES = 1 << 31

_HEADER = struct.Struct("<4s4sBBHIQ")
_MARK = b"BATX"


def pack(kind: bytes, sections: Sequence[bytes], level: int = 3) -> bytes:
    """Return a segment of a kind (four bytes) that holds these sections, deflated at a level (0: not at all)."""
    lengths = struct.pack(f"<{len(sections)}Q", *map(len, sections))
    body = b"".join((lengths, *sections))
    packed = zlib.compress(body, level)
    return _HEADER.pack(_MARK, kind, VERSION, len(sections), 0, zlib.crc32(packed), len(body)) + packed


def unpack(kind: bytes, segment: bytes, count: int) -> list[memoryview]:
    """Return the `count` sections of a segment of a kind.

    Bytes that are no such segment raise IndexDamaged: cut, changed, of another kind or version.
    """
    if len(segment) < _HEADER.size:
        raise IndexDamaged(f"a segment of {len(segment)} bytes has no whole header")
    mark, found, version, sections, unused, checksum, size = _HEADER.unpack_from(segment)
    if (mark, found, sections, unused) != (_MARK, kind, count, 0):
        raise IndexDamaged(f"these bytes are no segment of the kind {kind.decode()}")
    if version != VERSION:
        raise IndexDamaged(f"the segment has the format {version}, and this program reads {VERSION}")
    packed = memoryview(segment)[_HEADER.size :]
    if zlib.crc32(packed) != checksum or not 8 * count <= size <= MOST_BYTES:
        raise IndexDamaged("the bytes of a segment are not those that were written")
    return _split(_inflate(packed, size), count)


def _inflate(packed: memoryview, size: int) -> memoryview:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed, size + 1)
    except zlib.error as error:
        raise IndexDamaged("the bytes of a segment cannot be unpacked") from error
    if len(body) != size or not inflater.eof:
        raise IndexDamaged("a segment does not have the length that its header tells")
    return memoryview(body)


def _split(body: memoryview, count: int) -> list[memoryview]:
    lengths = struct.unpack_from(f"<{count}Q", body)
    if sum(lengths) + 8 * count != len(body):
        raise IndexDamaged("the sections of a segment do not fill it")
    sections, at = [], 8 * count
    for length in lengths:
        sections.append(body[at : at + length])
        at += length
    return sections


def number_bytes(kind: str, numbers: NDArray[Any]) -> bytes:
    """Return numbers as a section; `kind` is their type as numpy names it, such as `<u4`.

    The first bytes of all numbers stand together, then the second ones and so on: most are zeros, which pack well.
    """
    found = numbers.astype(kind)
    planes: bytes = found.view(np.uint8).reshape(-1, found.itemsize).T.tobytes()
    return planes


def read_numbers(kind: str, section: memoryview) -> NDArray[Any]:
    """Return the numbers of a section that `number_bytes` wrote.

    Raises: IndexDamaged: the section ends within a number.
    """
    found = np.dtype(kind)
    if len(section) % found.itemsize:
        raise IndexDamaged("a section of numbers ends within a number")
    planes = np.frombuffer(section, np.uint8).reshape(found.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(found).ravel().astype(found.newbyteorder("="), copy=False)
