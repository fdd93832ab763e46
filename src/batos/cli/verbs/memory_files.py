"""Finds the files that are to be remembered, and tells which of a folder's files are no text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from batos.brief import File, read_file
from batos.errors import BriefError

#: Folders whose files nobody wrote to be read.
_PASSED_OVER: Final = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that is to be remembered; `source` is its path from the root of the disk."""

    file: File
    source: str


@dataclass(slots=True)
class FileReader:
    """Reads files one by one, and keeps the reasons of those that it skipped, by path. `limit` is in bytes."""

    limit: int
    skipped: dict[str, str] = field(default_factory=dict)

    def read(self, path: Path) -> Iterator[FoundFile]:
        """Yield a file, or the files of a folder and the folders in it by their names, without hidden ones.

        Raises: BriefError: the path itself is a file that cannot be read or is no text.
        """
        if not path.is_dir():
            yield FoundFile(read_file(path, self.limit), str(path.resolve()))
            return
        for each in _files_in(path):
            if not each.is_file():  # a pipe would be waited for
                self.skipped[str(each)] = "it is no file, or is not there"
                continue
            try:
                yield FoundFile(read_file(each, self.limit), str(each.resolve()))
            except BriefError as error:
                self.skipped[str(each)] = error.message


def _files_in(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _PASSED_OVER)
        yield from (Path(where, each) for each in sorted(files) if not each.startswith("."))


def exists(path: str) -> bool:
    """Tell whether there is a file or folder of this name; a text is none."""
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # a text that is too long for a path
        return False
