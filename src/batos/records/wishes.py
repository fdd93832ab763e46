"""Methods that are to be made: what answered missions interpreted for want of one, kept until it is made or given up.

A wish is plain data, a `WishDocument`. docs/generation.md tells who makes it, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, reference
from batos.protocol.mission_documents import LearntDocument, WishDocument

#: The kind of contribution that a wish is.
KIND = "wish"
#: The form in which a mission asks for a method, under the key `wish`.
LATER = "later"


def wishes_in(told: Iterable[LearntDocument]) -> list[WishDocument]:
    """Return the wishes among the reports of a mission's attempts to generate."""
    return [each["wish"].copy() for each in told if each["outcome"] == LATER]


def name_of(wish: WishDocument) -> str:
    """Return the key of a wish: the slot without a method; with the intent where missions may forge different tools."""
    return f"{_slot_of(wish)} {wish['intent']}" if wish.get("forged") else _slot_of(wish)


def _slot_of(wish: WishDocument) -> str:
    return f"{wish['holder']} {wish['selector']}"


def fold(root: Root, mission: str, payload: WishDocument) -> None:
    """Keep a committed mission's wish, unless another's for the same slot and intent stands already."""
    kept = root[roots.WISHES]
    before = kept.get(name_of(payload))
    if before is None or before["intent"] != payload["intent"]:
        kept[name_of(payload)] = {**payload, "mission": mission}


def list_wishes(root: Root) -> list[WishDocument]:
    """List every wish, those of the first mission on top."""
    wishes = [each.copy() for each in root[roots.WISHES].values()]
    return sorted(wishes, key=lambda each: (each["mission"], name_of(each)))


def count(root: Root, holder: UvmObject | None = None) -> int:
    """Count the wishes: all of them, or those for slots of one object."""
    kept = root[roots.WISHES]
    if holder is None:
        return len(kept)
    return sum(each["holder"] == reference(holder) for each in kept.values())


def drop(root: Root, done: Sequence[WishDocument]) -> None:
    """Keep these no longer; one that was made anew for another intent stays."""
    kept = root[roots.WISHES]
    for wish in done:
        # Version 0.1.0 kept a forged tool's wish by its slot alone.
        for name in {name_of(wish), _slot_of(wish)}:
            there = kept.get(name)
            if there is not None and there["intent"] == wish["intent"]:
                del kept[name]
