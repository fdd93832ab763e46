"""Room on a disk: whether an error says that there was none, and what is told about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ZODB.FileStorage.FileStorage import FileStorageQuotaError

from batos.errors import DiskFull

_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})

_SAFE = "then start again; nothing committed was lost."


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, each once."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def no_room(error: BaseException) -> bool:
    """Whether this error, or one that led to it, says that a disk, a quota or a limit is full."""
    return any(_says_full(each) for each in causes(error))


def _says_full(error: BaseException) -> bool:
    if isinstance(error, DiskFull | FileStorageQuotaError):
        return True
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def disk_full(error: BaseException, path: Path | None, needed: int | None = None) -> DiskFull:
    """What is told of a write to `path` that did not fit: how many bytes it needs, how many are free, what to do."""
    first = next((each for each in causes(error) if _says_full(each)), error)
    if isinstance(first, DiskFull):
        return first
    reason = getattr(first, "strerror", None) or str(first)
    size = "" if needed is None else f" for {needed:,} bytes"
    free = _free(path)
    left = "" if free is None else f"; its disk has {free:,} bytes free"
    return DiskFull(f"no room{size} in {path or 'the database'} ({reason}{left})", remedy=_remedy(first, path, needed))


def _remedy(error: BaseException, path: Path | None, needed: int | None) -> str:
    amount = "some space" if needed is None else f"{needed:,} bytes at the least, and better much more"
    if isinstance(error, FileStorageQuotaError):
        return f"Raise `quota` in the image's URI, {_SAFE}"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"Raise the limit on the size of files (ulimit -f): this needs {amount}; {_SAFE}"
    return f"Free {amount}, {f'on the disk of {path.parent}' if path else 'where the database is'}, {_SAFE}"


def _free(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize
