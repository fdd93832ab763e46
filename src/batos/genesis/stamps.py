"""What folders look like from outside, so that their files are read again only when something changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

#: A file may change twice within one tick of its clock: one that changed so lately is looked at again.
SETTLED_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """Every file and folder below some folders, by path: size, times of change, inode. Equal stamps: nothing changed.

    `settled` is false where something changed so lately that it may have changed again without a trace.
    """

    entries: tuple[tuple[str, int, int, int, int], ...]
    settled: bool

    def covers(self, other: Stamp | None) -> bool:
        """Whether what was read at the other stamp is still what stands there."""
        return other is not None and other.settled and self.entries == other.entries


def stamp(*folders: Path) -> Stamp:
    """Look at folders; one that is not there has no entry."""
    entries = tuple(sorted(entry for folder in folders for entry in _below(folder)))
    newest = max((max(entry[2], entry[3]) for entry in entries), default=0)
    return Stamp(entries, newest < time_ns() - SETTLED_NS)


def _below(folder: Path) -> Iterator[tuple[str, int, int, int, int]]:
    try:
        yield _entry(folder)
        found = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for each in found:
        if each.is_dir():
            yield from _below(Path(each.path))
        else:
            try:
                yield _entry(Path(each.path))
            except OSError:
                continue


def _entry(path: Path) -> tuple[str, int, int, int, int]:
    found = path.stat()
    return str(path), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
