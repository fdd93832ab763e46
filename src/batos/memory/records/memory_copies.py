"""The further places that a document's content came from: where the content of one changes, the document stays."""

from __future__ import annotations

from typing import Final

from batos.image.roots import Root
from batos.memory.records.memory_segments import find_tree, items_beginning, make_tree

_TREE: Final = "copies"
_NONE: Final = object()


def note_place(root: Root, name: str, place: str) -> None:
    """Note a further place of a document."""
    make_tree(root, _TREE)[f"{name}\0{place}"] = None


def drop_place(root: Root, name: str, place: str) -> bool:
    """Take a further place from a document; return False where it is none."""
    return find_tree(root, _TREE).pop(f"{name}\0{place}", _NONE) is not _NONE


def places_of(root: Root, name: str) -> list[str]:
    """Return the further places of a document."""
    return [key.partition("\0")[2] for key, _ in items_beginning(find_tree(root, _TREE), f"{name}\0")]


def names_at(root: Root, place: str) -> list[str]:
    """Return the names of the documents that have this further place. Reads all further places."""
    return [key.partition("\0")[0] for key in find_tree(root, _TREE) if key.partition("\0")[2] == place]
