"""The pinned memories of the image: what a person wants recalled for every question, by user and scope."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records.memory_segments import find_tree, items_beginning, make_tree
from batos.objects.prototype import own_slots

#: The name of the tree among the records of memories; an image in which nothing was pinned has none.
_PINS: Final = "pins"


def pin(root: Root, name: str, at: str) -> bool:
    """Set a pin on a memory; return False if there was one already."""
    return bool(make_tree(root, _PINS).insert(_key(root, name), at))


def unpin(root: Root, name: str) -> bool:
    """Take a pin away; return False if there was none."""
    return find_tree(root, _PINS).pop(_key(root, name), None) is not None


def pinned_at(root: Root, name: str) -> str:
    """Return when a memory was pinned; "" if it is not."""
    return str(find_tree(root, _PINS).get(_key(root, name), ""))


def is_pinned(root: Root, name: str) -> bool:
    """Test if a memory is pinned."""
    return _key(root, name) in find_tree(root, _PINS)


def list_pinned(root: Root, user: str, scopes: Collection[str] | None = None) -> Iterator[str]:
    """Yield the names of a user's pinned memories, of some scopes or of all, scope by scope, the oldest first."""
    for key, _ in items_beginning(find_tree(root, _PINS), f"{user}\0"):
        _, scope, name = key.split("\0")
        if scopes is None or scope in scopes:
            yield name


def _key(root: Root, name: str) -> str:
    slots = own_slots(root[roots.DOCUMENTS][name])
    return f"{slots['user']}\0{slots['scope']}\0{name}"
