"""The mark of an erasure in the journal: the commit of the image before which nothing that was read is kept in words.

Whoever thinks about the image as it was, as a dream does, or makes a method of what it read, has words that may be
erased meanwhile, on any node. Such a writer says which commit it read; the mark is looked at in the commit that writes.
"""

from __future__ import annotations

from typing import Final

from batos.image.ids import serial_of, tid_text
from batos.image.roots import JournalRoot, as_mapping, connection_of
from batos.protocol.errors import WordsErased

#: The key of the journal's root.
ERASED: Final = "erased"
#: The mark while an erasure is under way: every commit is before it.
_UNDER_WAY: Final = tid_text(b"\x7f" + b"\xff" * 7)


def begin(root: JournalRoot) -> None:
    """Mark that an erasure is under way; within a change."""
    if not is_under_way(root):
        root[ERASED] = _UNDER_WAY


def end(root: JournalRoot, newest: bytes) -> None:
    """Mark that it has ended, at this commit of the image; within a change."""
    if is_under_way(root):
        root[ERASED] = tid_text(newest)


def is_under_way(root: JournalRoot) -> bool:
    """Test if an erasure is under way, or was cut off."""
    return bool(root.get(ERASED) == _UNDER_WAY)


def is_behind(root: JournalRoot, read_at: bytes | None, *, for_change: bool = False) -> bool:
    """Test if something was erased since a commit of the image (None: that is guarded otherwise).

    `for_change`: the commit of this change meets a conflict if an erasure begins before it.
    """
    if read_at is None:
        return False
    mark = root.get(ERASED)
    if for_change:
        connection_of(root).readCurrent(as_mapping(root))
    return mark is not None and read_at < serial_of(mark)


def erased_error() -> WordsErased:
    """Make the error for whoever has read what may be erased by now."""
    return WordsErased("something was erased from the mind, and this read it as it was before")
