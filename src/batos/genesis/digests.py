"""Digests of large files, computed once and remembered by what a stat says of each file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

#: A file changed within this time may change again without its stat telling; its digest is not written down.
_SETTLED_NS = 2_000_000_000
_MOST_BYTES = 4 << 20


class Stamp(NamedTuple):
    """What tells one content of a file from another without reading it: bytes, time of change, inode."""

    size: int
    mtime_ns: int
    inode: int


def stamp(path: Path) -> Stamp:
    """The stamp of a file; OSError when there is none."""
    found = path.stat()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def settled(mark: Stamp) -> bool:
    """Whether the file was left alone for so long that another change would show in its stamp."""
    return mark.mtime_ns < time_ns() - _SETTLED_NS


class Digests:
    """`sha256:<64 hex>` by path and stamp, kept in a file that may be lost or removed at any time.

    With None they live only as long as this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, tuple[Stamp, str]] = _read(path) if path is not None else {}
        self._wanted: set[str] = set()
        self._changed = False

    def of(self, path: Path) -> str:
        """The digest of a file's content as it is now; OSError when it cannot be read."""
        key = str(path.absolute())
        self._wanted.add(key)
        known = self._known.get(key)
        while True:
            before = stamp(path)
            if known is not None and known[0] == before:
                return known[1]
            with path.open("rb") as file:
                digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            # What was written to meanwhile is read again: its stamp would belong to another content.
            if stamp(path) == before:
                break
        self._known[key] = before, digest
        self._changed = True
        return digest

    def forget(self, path: Path) -> None:
        """Read this file anew the next time."""
        self._changed |= self._known.pop(str(path.absolute()), None) is not None

    def save(self) -> None:
        """Write down what is known of the files that were asked for; whatever fails only costs time later."""
        gone = self._known.keys() - self._wanted
        if self._path is None or not (self._changed or gone):
            return
        files = {key: [*mark, digest] for key, (mark, digest) in sorted(self._known.items())
                 if key in self._wanted and settled(mark)}  # fmt: skip
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps({"v": 1, "files": files}, indent=1), encoding="utf-8")
            beside.replace(self._path)
        except OSError:
            beside.unlink(missing_ok=True)
            return
        self._changed = False


def _read(path: Path) -> dict[str, tuple[Stamp, str]]:
    """What the file holds; nothing of it when it is not as we write it."""
    try:
        with path.open("rb") as file:
            found: Any = json.loads(file.read(_MOST_BYTES))
        rows = found["files"].items() if found["v"] == 1 else ()
        return {str(key): (Stamp(*map(int, row[:3])), _digest(row[3])) for key, row in rows}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def _digest(value: Any) -> str:
    if isinstance(value, str) and len(value) == 71 and value.startswith("sha256:"):
        return value
    raise ValueError("no digest")
