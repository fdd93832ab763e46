"""What a reader hands on, as a list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from batos.memory.reading.read_text import Emit, Read, ReadText


def read_all(reader: Callable[[Path, Emit], None], path: Path, data: bytes) -> list[Read]:
    """All that a reader hands on of a file of these bytes."""
    path.write_bytes(data)
    found: list[Read] = []
    reader(path, found.append)
    return found


def texts_of(found: list[Read]) -> list[str]:
    """The texts alone."""
    return [each.text for each in found if isinstance(each, ReadText)]
