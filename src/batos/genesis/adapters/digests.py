"""Digests of large files, computed once and stored with the mark of each file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

from batos import private_files

#: A file changed within this time may change again without its mark telling; its digest is not written down.
_SETTLED_NS = 2_000_000_000
_MOST_BYTES = 4 << 20


class FileMark(NamedTuple):
    """Tells one content of a file from another without reading it: bytes, both times of change, inode.

    The second time is the system's own: a copy that keeps the first one, as `cp -p` and archives make, still changes
    it.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def mark(path: Path) -> FileMark:
    """Return the mark of a file or folder.

    Raises: OSError: there is none.
    """
    found = path.stat()
    return FileMark(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def is_settled(seen: FileMark) -> bool:
    """Test if a file was last changed so long ago that another change would show in its mark."""
    return seen.mtime_ns < time_ns() - _SETTLED_NS


class Digests:
    """`sha256:<64 hex>` by path and mark, kept in a file that may be lost or removed at any time.

    With None they live only as long as this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, tuple[FileMark, str]] = _read(path) if path is not None else {}
        self._wanted: set[str] = set()
        self._changed = False

    def digest(self, path: Path) -> str:
        """Return the digest of a file's present content.

        Raises: OSError: the file cannot be read.
        """
        key = str(path.absolute())
        self._wanted.add(key)
        known = self._known.get(key)
        while True:
            before = mark(path)
            if known is not None and known[0] == before:
                return known[1]
            with path.open("rb") as file:
                digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            # A file that was written meanwhile is read again: its mark would belong to other content.
            if mark(path) == before:
                break
        self._known[key] = before, digest
        self._changed = True
        return digest

    def save(self) -> None:
        """Write down what is known of the files that were asked for; whatever fails only costs time later."""
        gone = self._known.keys() - self._wanted
        if self._path is None or not (self._changed or gone):
            return
        files = {key: [*seen, digest] for key, (seen, digest) in sorted(self._known.items())
                 if key in self._wanted and is_settled(seen)}  # fmt: skip
        text = json.dumps({"v": 1, "files": files}, indent=1)
        try:
            private_files.write_shared(self._path, text)
        except OSError:
            return
        self._changed = False


def _read(path: Path) -> dict[str, tuple[FileMark, str]]:
    """Read the stored digests; return none if the file is not in our format."""
    if not path.is_file():  # nor is a pipe opened, which would wait for somebody to write
        return {}
    try:
        with path.open("rb") as file:
            found: Any = json.loads(file.read(_MOST_BYTES))
        rows = found["files"].items() if found["v"] == 1 else ()
        return {str(key): (FileMark(*map(int, row[:4])), _digest(row[4])) for key, row in rows}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def _digest(value: object) -> str:
    if isinstance(value, str) and len(value) == 71 and value.startswith("sha256:"):
        return value
    raise ValueError("no digest")
