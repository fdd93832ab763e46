"""Format 2: the wish for a forged tool is kept under its slot and intent; it was kept under its slot alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from batos.image import roots
from batos.image.roots import Root
from batos.protocol.mission_documents import WishDocument


def find_wishes(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the wishes behind a key that are kept under another name than theirs, each with its change."""
    kept = root[roots.WISHES]
    for key in kept.keys(after, excludemin=bool(after)):
        name = _name_of(kept[key])
        if name != key:
            yield key, partial(_rename, root, key, name)


def _name_of(wish: WishDocument) -> str:
    slot = f"{wish['holder']} {wish['selector']}"
    return f"{slot} {wish['intent']}" if wish.get("forged") else slot


def _rename(root: Root, key: str, name: str) -> None:
    kept = root[roots.WISHES]
    wish = kept.pop(key)
    if name not in kept:  # one that came later for the same intent stays
        kept[name] = wish
