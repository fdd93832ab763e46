"""The pinned memories of the image: what a person wants recalled for every question, by user and scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from BTrees.OOBTree import OOBTree

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records.memory_segments import trees_of
from batos.objects.prototype import own_slots

#: The name of the tree among the records of memories; an image in which nothing was pinned has none.
_PINS: Final = "pins"


def pin(root: Root, name: str, at: str) -> bool:
    """Set a pin on a memory; return False if there was one already."""
    kept: Any = trees_of(root)
    if _PINS not in kept:
        kept[_PINS] = OOBTree()
    key = _key(root, name)
    if key in kept[_PINS]:
        return False
    kept[_PINS][key] = at
    return True


def unpin(root: Root, name: str) -> bool:
    """Take a pin away; return False if there was none."""
    pins = _pins(root)
    key = _key(root, name)
    if key not in pins:
        return False
    del pins[key]
    return True


def pinned_at(root: Root, name: str) -> str:
    """Return when a memory was pinned; "" if it is not."""
    return str(_pins(root).get(_key(root, name), ""))


def is_pinned(root: Root, name: str) -> bool:
    """Tell whether a memory is pinned."""
    return _key(root, name) in _pins(root)


def list_pinned(root: Root, user: str, scopes: Iterable[str]) -> Iterator[str]:
    """Yield the names of a user's pinned memories of some scopes, scope by scope, the oldest first."""
    pins = _pins(root)
    for scope in sorted(scopes):
        begin = f"{user}\0{scope}\0"
        for key in pins.keys(begin, f"{begin[:-1]}\1", excludemax=True) if pins else ():
            yield key.removeprefix(begin)


def list_all_pinned(root: Root, user: str) -> Iterator[str]:
    """Yield the names of all of a user's pinned memories."""
    pins = _pins(root)
    for key in pins.keys(f"{user}\0", f"{user}\1", excludemax=True) if pins else ():
        yield key.rpartition("\0")[2]


def _pins(root: Root) -> Any:
    return trees_of(root).get(_PINS, {})


def _key(root: Root, name: str) -> str:
    slots = own_slots(root[roots.DOCUMENTS][name])
    return f"{slots['user']}\0{slots['scope']}\0{name}"
