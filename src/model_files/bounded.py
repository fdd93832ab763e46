"""Read the beginning of a file piece by piece, never more of it than allowed."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

_CHUNK = 1 << 18
_SHOWN = 120  # characters of a file's own names that a message shows


class NotWeights(ValueError):
    """Raised for a file that is not in the expected format; `where` names the key, tensor or byte that is wrong."""

    def __init__(self, what: str, where: str = "") -> None:
        where = where if len(where) <= _SHOWN else f"{where[:_SHOWN]}..."
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where


class Head:
    """The first `most` bytes of an open file, read once and in order; `at` counts the bytes that were taken.

    `size` is the length of the whole file in bytes, when it was opened. All methods raise NotWeights if the file ends
    early or more than `most` bytes are asked for; `where` is the place in its message.
    """

    __slots__ = ("_buffer", "_left", "_most", "_next", "_source", "at", "size")

    def __init__(self, source: BinaryIO, most: int) -> None:
        self.size = os.fstat(source.fileno()).st_size
        self.at = 0
        self._most = self._left = most
        self._source = source
        self._buffer = b""
        self._next = 0

    def take(self, count: int, where: str = "") -> bytes:
        """Return the next `count` bytes."""
        end = self._next + count
        if end > len(self._buffer):
            self._fill(count, where)
            end = count
        taken = self._buffer[self._next : end]
        self._next = end
        self.at += count
        return taken

    def number(self, form: struct.Struct, where: str = "") -> int:
        """Return the next integer, in the format `form`."""
        if self._next + form.size > len(self._buffer):
            self._fill(form.size, where)
        (found,) = form.unpack_from(self._buffer, self._next)
        self._next += form.size
        self.at += form.size
        return int(found)

    def skip(self, count: int, where: str = "") -> None:
        """Skip `count` bytes, which still count towards `most`."""
        while count > 0:
            piece = min(count, _CHUNK)
            self.take(piece, where)
            count -= piece

    def _fill(self, count: int, where: str) -> None:
        """Read until at least `count` bytes are buffered."""
        rest = self._buffer[self._next :]
        missing = count - len(rest)
        if self.at + count > self.size:
            raise NotWeights(f"the file ends too early, at byte {self.size}", where)
        if missing > self._left:
            raise NotWeights(f"the header has more than {self._most} bytes", where)
        data = self._source.read(min(max(missing, _CHUNK), self._left))
        self._left -= len(data)
        if len(data) < missing:  # the file was cut after it was opened
            raise NotWeights(f"the file ends too early, at byte {self.at + len(rest) + len(data)}", where)
        self._buffer = rest + data
        self._next = 0
