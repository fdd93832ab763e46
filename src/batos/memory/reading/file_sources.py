"""The sources of files that are remembered: where a text came from, as its memory keeps it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

#: The longest source.
_SOURCE: Final = 4_096


def source_of(path: Path) -> str:
    """Return the source of a file, also of one that is not there: its absolute path as text.

    Raises: OSError, RuntimeError, ValueError: there can be no such file.
    """
    return shorten_source(os.fsencode(path.resolve()).decode("utf-8", "replace"))


def shorten_source(source: str) -> str:
    """Return a source; of one that is too long a digest stands for the end."""
    if len(source) <= _SOURCE:
        return source
    digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    return f"{source[: _SOURCE - len(digest) - 1]}~{digest}"
