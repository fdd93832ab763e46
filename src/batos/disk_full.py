"""Tell that a disk, a quota or a limit on files is full, and say what to do about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from batos.protocol.errors import DiskFull

_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})

#: The end of each remedy: nothing has to be repaired.
SAFE = "then start again; nothing committed was lost."


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and then those that led to it, each once."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def no_room(error: BaseException) -> bool:
    """Return True if this error, or one that led to it, says that a disk, a quota or a limit is full."""
    return any(_says_full(each) for each in causes(error))


def disk_full(error: BaseException, path: Path | None, needed: int | None = None) -> DiskFull:
    """Return the error for a write to `path` that did not fit: the bytes it needs, the bytes free, the remedy."""
    first = next((each for each in causes(error) if _says_full(each)), error)
    if isinstance(first, DiskFull):
        return first
    reason = getattr(first, "strerror", None) or str(first)
    return disk_full_error(reason, path, needed, _remedy(first, path, needed))


def disk_full_error(reason: str, path: Path | None, needed: int | None, remedy: str) -> DiskFull:
    """Return the error for a write that did not fit, for a reason that the system gave."""
    size = "" if needed is None else f" for {needed:,} bytes"
    free = _free(path)
    left = "" if free is None else f"; its disk has {free:,} bytes free"
    return DiskFull(f"no room{size} in {path or 'the database'} ({reason}{left})", remedy=remedy)


def _says_full(error: BaseException) -> bool:
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in _NO_ROOM)


def _remedy(error: BaseException, path: Path | None, needed: int | None) -> str:
    amount = "some space" if needed is None else f"{needed:,} bytes at the least, and better much more"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"Raise the limit on the size of files (ulimit -f): this needs {amount}; {SAFE}"
    return f"Free {amount}, {f'on the disk of {path.parent}' if path else 'where the database is'}, {SAFE}"


def _free(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize
