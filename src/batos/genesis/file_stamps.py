"""Marks of files and folders, by which they are read again only if something changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import NamedTuple

#: A file may change twice within one tick of its clock: one that changed so lately is looked at again.
SETTLED_NS = 100_000_000
#: Folders within folders that are looked into: an adapter's, in its persona's. A link may lead back up, without end.
DEEPEST = 2


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


@dataclass(frozen=True, slots=True)
class Stamp:
    """The mark of every file and folder below some folders, by path. Equal stamps: nothing changed.

    `settled` is false where something changed so lately that it may have changed again without a trace.
    """

    entries: tuple[tuple[str, FileMark], ...]
    settled: bool

    def covers(self, other: Stamp | None) -> bool:
        """Test if the files read at the other stamp are still the same."""
        return other is not None and other.settled and self.entries == other.entries


def stamp(*folders: Path) -> Stamp:
    """Look at folders; one that is not there has no entry."""
    entries = tuple(sorted(entry for folder in folders for entry in _below(folder)))
    newest = max((max(each.mtime_ns, each.ctime_ns) for _, each in entries), default=0)
    return Stamp(entries, newest < time_ns() - SETTLED_NS)


def _below(folder: Path, deep: int = DEEPEST) -> Iterator[tuple[str, FileMark]]:
    try:
        yield str(folder), mark(folder)
        found = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for each in found:
        try:
            if deep > 0 and each.is_dir():
                yield from _below(Path(each.path), deep - 1)
            else:
                yield each.path, mark(Path(each.path))
        except OSError:  # a link to nowhere or to itself
            continue
