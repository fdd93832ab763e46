"""The further places that a document's content came from: where the content of one changes, the document stays."""

from __future__ import annotations

from typing import Any, Final

from BTrees.OOBTree import OOBTree

from batos.image.roots import Root
from batos.memory.records.memory_segments import trees_of

_TREE: Final = "copies"


def note_place(root: Root, name: str, place: str) -> None:
    """Note a further place of a document."""
    kept = trees_of(root)
    if _TREE not in kept:  # an image that was made before there were any
        kept[_TREE] = OOBTree()
    kept[_TREE][f"{name}\0{place}"] = None


def drop_place(root: Root, name: str, place: str) -> bool:
    """Take a further place from a document; return False where it is none."""
    return _tree(root).pop(f"{name}\0{place}", _NONE) is not _NONE


def places_of(root: Root, name: str) -> list[str]:
    """Return the further places of a document."""
    return [key.partition("\0")[2] for key in _tree(root).keys(f"{name}\0", f"{name}\1", excludemax=True)]


def names_at(root: Root, place: str) -> list[str]:
    """Return the names of the documents that have this further place. Reads all further places."""
    return [key.partition("\0")[0] for key in _tree(root) if key.partition("\0")[2] == place]


_NONE: Final = object()


def _tree(root: Root) -> Any:
    kept = trees_of(root)
    return kept[_TREE] if _TREE in kept else OOBTree()
