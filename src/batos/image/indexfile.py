"""The index that lies beside a file storage, read as bytes: ZODB would unpickle it, and a pickle can call anything."""

from __future__ import annotations

import struct
from pathlib import Path

from BTrees.fsBTree import fsBucket
from ZODB.fsIndex import fsIndex

#: The beginning of each of the pickles that ZODB writes one after the other.
_PICKLE = b"\x80\x03"
_STOP = b"."


class _Foreign(ValueError):
    """Bytes that `fsIndex.save` does not write."""


def read_index(path: Path) -> tuple[int, fsIndex] | None:
    """Read ZODB's index file: return the position up to which it knows the database, and the index; None if it is not
    valid.

    The format is that of `fsIndex.save` in ZODB 6: the position; for each prefix a pair (six bytes of an object id, the
    bucket of ids that begin with them); None. Nothing else is parsed, so that a damaged file can do no harm.
    """
    try:
        return _IndexReader(path.read_bytes()).index()
    except (OSError, ValueError, struct.error):
        return None


class _IndexReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def index(self) -> tuple[int, fsIndex]:
        self._expect(_PICKLE)
        position = self._number()
        self._expect(_STOP)
        index = fsIndex()
        while True:
            self._expect(_PICKLE)
            if self._data[self._at :] == b"N" + _STOP:
                return position, index
            prefix, bucket = self._bytes(), self._bytes()
            self._expect(b"\x86" + _STOP)
            if len(prefix) != 6:
                raise _Foreign("an index's key is six bytes")
            index._data[prefix] = fsBucket().fromString(bucket)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise _Foreign("the index ends early")
        self._at += size
        return taken

    def _expect(self, expected: bytes) -> None:
        if self._take(len(expected)) != expected:
            raise _Foreign("not what ZODB writes")

    def _number(self) -> int:
        code = self._take(1)
        if code == b"\x8a":
            return int.from_bytes(self._take(self._take(1)[0]), "little", signed=True)
        size = {b"K": 1, b"M": 2, b"J": 4}.get(code)
        if size is None:
            raise _Foreign("not a number")
        return int.from_bytes(self._take(size), "little", signed=size == 4)

    def _bytes(self) -> bytes:
        code = self._take(1)
        size = {b"C": 1, b"B": 4}.get(code)
        if size is None:
            raise _Foreign("not bytes")
        return self._take(int.from_bytes(self._take(size), "little"))
