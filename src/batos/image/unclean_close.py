"""The files beside a storage's data: traces of an unclean close, and the index, which is never unpickled."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import struct
from pathlib import Path
from typing import BinaryIO

import structlog
from BTrees.fsBTree import fsBucket
from zc.lockfile import LockFile
from ZODB.FileStorage.FileStorage import packed_version
from ZODB.fsIndex import fsIndex

from batos.image.classes import REMEDY
from batos.protocol.errors import ImageDamaged

#: The beginning of each of the pickles that ZODB writes one after the other.
_PICKLE = b"\x80\x03"
_STOP = b"."


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
                raise ValueError("an index's key is six bytes")
            index._data[prefix] = fsBucket().fromString(bucket)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise ValueError("the index ends early")
        self._at += size
        return taken

    def _expect(self, expected: bytes) -> None:
        if self._take(len(expected)) != expected:
            raise ValueError("not what ZODB writes")

    def _number(self) -> int:
        code = self._take(1)
        if code == b"\x8a":
            return int.from_bytes(self._take(self._take(1)[0]), "little", signed=True)
        size = {b"K": 1, b"M": 2, b"J": 4}.get(code)
        if size is None:
            raise ValueError("not a number")
        return int.from_bytes(self._take(size), "little", signed=size == 4)

    def _bytes(self) -> bytes:
        code = self._take(1)
        size = {b"C": 1, b"B": 4}.get(code)
        if size is None:
            raise ValueError("not bytes")
        return self._take(int.from_bytes(self._take(size), "little"))


_log = structlog.get_logger("batos")

#: tid, length, status, lengths of user, description and extension; ZODB.FileStorage.format describes them.
_TRANSACTION = struct.Struct(">8sQcHHH")
#: oid, tid, previous, the transaction's position, nothing, length (0: a reference of eight bytes follows).
_RECORD = struct.Struct(">8s8sQQHQ")
_LENGTH = struct.Struct(">Q")

_FINISHED = (b" ", b"u", b"p")
_NOT_ZERO = re.compile(rb"[^\0]")


def settle_tail(file: BinaryIO, path: Path, start: int, last: bytes) -> None:
    """Cut off what a crash left behind the last commit of an open file; ImageDamaged if it is no crash's doing.

    `start` is where the known part of the file ends and `last` its last transaction id. Every commit is synced before
    the next begins, so a crash leaves one unfinished transaction, or zeros, at the very end. Where a whole transaction
    follows, or what is cut was finished, committed work would be lost in silence: then nothing is changed.
    """
    file.flush()
    size = os.fstat(file.fileno()).st_size
    if size <= start:
        return
    at, zeros = _end_of_last_commit(file, path, start, last)
    if at == size:
        return
    kept = None if zeros else _keep(path, file, at)
    file.truncate(at)
    os.fsync(file.fileno())
    _log.warning("image.cut", file=str(path), offset=at, bytes=size - at, zeros=zeros, kept=kept and str(kept))


def end_of_commits(path: Path, start: int, last: bytes, *, strict: bool) -> int:
    """Return the position where the last commit of a file ends, and change nothing.

    Raises: ImageDamaged: with `strict`, as `settle` does.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return size if size <= start else _end_of_last_commit(file, path, start, last, strict=strict)[0]


def _end_of_last_commit(
    file: BinaryIO, path: Path, start: int, last: bytes, *, strict: bool = True
) -> tuple[int, bool]:
    """Return the position where the last commit ends, and if only zeros follow it.

    Raises: ImageDamaged: with `strict`, the rest is not what a crash leaves.
    """
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        if view[:4] != packed_version:
            return len(view), True
        at = _sound(view, start, last)
        zeros = _NOT_ZERO.search(view, at) is None
        if strict and at < len(view) and not zeros:
            _check_cut(view, path, at)
        return at, zeros


def cuttings(path: Path) -> list[Path]:
    """List the files that keep what was cut off a storage."""
    return sorted(
        each for each in path.parent.glob("*.tr*") if re.fullmatch(rf"{re.escape(path.name)}\.tr\d+", each.name)
    )


def _sound(view: mmap.mmap, at: int, last: bytes) -> int:
    """Return the end of the last whole, finished transaction from `at` on, where each is newer than the one before."""
    while end := _end(view, at):
        if view[at + 16 : at + 17] not in _FINISHED or view[at : at + 8] <= last:
            break
        last, at = view[at : at + 8], end
    return at


def _end(view: mmap.mmap, at: int) -> int:
    """Return the end of the transaction at `at`, or 0 if its lengths, its records and its trailer do not agree."""
    if at + _TRANSACTION.size + _LENGTH.size > len(view):
        return 0
    tid, length, _, *texts = _TRANSACTION.unpack_from(view, at)
    end = at + length
    if end + _LENGTH.size > len(view) or _LENGTH.unpack_from(view, end) != (length,):
        return 0
    place = at + _TRANSACTION.size + sum(texts)
    while place + _RECORD.size < end:
        _, serial, _, start, nothing, size = _RECORD.unpack_from(view, place)
        if (serial, start, nothing) != (tid, at, 0):
            return 0
        place += _RECORD.size + (size or _LENGTH.size)
    return end + _LENGTH.size if place == end else 0


def _check_cut(view: mmap.mmap, path: Path, at: int) -> None:
    """Raise ImageDamaged if what stands from `at` on is more than one unfinished transaction."""
    rest = len(view) - at
    later = _later(view, at)
    if later:
        why = f"a whole transaction follows at byte {later:,}"
    elif _is_finished(view, at):
        why = "it was finished, so it may have been acknowledged"
    else:
        return
    raise ImageDamaged(f"{path} is damaged at byte {at:,}, {rest:,} bytes before its end: {why}", remedy=REMEDY)


def _later(view: mmap.mmap, at: int) -> int:
    """Find the first whole transaction after `at`; return its position, or 0.

    The search looks for the zeros at the start of a length. The records of a transaction name its position, so that
    bytes which only look like a transaction (such as a database attached to a mission) are not taken for one.
    """
    end = _end(view, at)
    if end and end < len(view) and _end(view, end):
        return end
    zeros = 8 - (max(len(view) - at, 1).bit_length() + 7) // 8
    pattern = re.compile(rb"\0(?=\0{%d}[\0-\xff]{%d}[ upc])" % (zeros - 1, 8 - zeros))
    for found in pattern.finditer(view, at + 1 + 8):
        place = found.start() - 8
        length: int = _LENGTH.unpack_from(view, place + 8)[0]
        if length > _TRANSACTION.size + _RECORD.size and _end(view, place):
            return place
    return 0


def _is_finished(view: mmap.mmap, at: int) -> bool:
    """Test if the last transaction was finished, although it is not sound now.

    ZODB writes the status last and the trailer just before it. A crash may leave zeros in the place of either. A crash
    leaves neither a correct trailer after a wrong header nor a wrong trailer without zeros.
    """
    header = view[at : at + _TRANSACTION.size]
    if len(header) < _TRANSACTION.size or not header.strip(b"\0") or header[16:17] == b"c":
        return False
    trailer: int = _LENGTH.unpack_from(view, len(view) - 8)[0]
    if trailer == len(view) - at - 8:
        return True
    length: int = _TRANSACTION.unpack(header)[1]
    end = at + length
    return header[16:17] in _FINISHED and end + 8 <= len(view) and view[end : end + 8].strip(b"\0") != b""


def _keep(path: Path, file: BinaryIO, at: int) -> Path:
    """Copy what will be cut into the first free file of the name .tr0, .tr1, ..."""
    number = 0
    while os.path.lexists(kept := path.with_name(f"{path.name}.tr{number}")):
        number += 1
    file.seek(at)
    with kept.open("xb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())
    return kept


_pack_log = structlog.get_logger("batos.image")


def is_put_aside(file: Path) -> bool:
    """Test if a pack has put a file aside, and nothing into its place yet.

    A former file alone is no sign of that: a person may have named it so.
    """
    return not file.exists() and all(Path(f"{file}{suffix}").exists() for suffix in (".old", ".pack"))


def settle_pack(path: str) -> bool:
    """Put a file back that a pack had put aside, and drop the half of its successor.

    ZODB writes the new file beside the old one, puts the old one aside and the new one into its place, and removes
    blobs and the old one last. Returns whether it had come as far as that last part, which the caller has to do then.

    Raises: LockError: another process has the file.
    """
    file, former, packed = Path(path), Path(f"{path}.old"), Path(f"{path}.pack")
    if not (former.exists() or packed.exists()):
        return False
    lock = LockFile(f"{path}.lock")  # whoever packs just now has no file for a moment
    try:
        was_replaced = file.exists() and former.exists() and not packed.exists()
        if is_put_aside(file):
            former.rename(file)
            _pack_log.warning("image.pack_undone", file=path)
        if file.exists():
            packed.unlink(missing_ok=True)
    finally:
        lock.close()
    return was_replaced
