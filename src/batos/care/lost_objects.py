"""Objects that are lost: where something refers to one, and how the image goes on without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from batos.care.image_faults import ImageFault, discard, discard_memory
from batos.care.references import ReferenceGraph, oid_of
from batos.image import roots
from batos.image.ids import oid_text
from batos.image.records import DIGESTS
from batos.image.roots import Root, connection_of
from batos.memory.indexes import kinds
from batos.memory.indexes.entries import Entry, words_beside
from batos.memory.records.memory_segments import NewSegment, add_segment, trees_of
from batos.objects.prototype import UvmObject, own_slots

#: Trees whose entries are objects, and what each entry is.
_TREES: Final = {
    roots.ATTACHMENTS: "the attached file", roots.CONVERSATIONS: "the conversation", roots.DOCUMENTS: "the memory",
    roots.METHODS: "the methods of", roots.APPROVALS: "the approval", roots.GRANTS: "the grant",
    roots.EFFECTS: "the effect", roots.UNDONE: "the undone mission",
}  # fmt: skip
_BACKUP: Final = "Only a backup brings it back: `batos restore`."


def find_dangling(root: Root, graph: ReferenceGraph) -> Iterator[ImageFault]:
    """Yield a fault for each reference to a lost object; where it stands in a list, the entry can go."""
    lost = {oid_of(each) for each in graph.lost_records}
    if not lost:
        return
    told: set[bytes] = set()
    for fault, oid in _entries(root, lost):
        told.add(oid)
        yield fault
    for holder, each in graph.list_broken():
        if oid_of(each) not in told:
            yield _fault_of_holder(root, graph, holder, each)


def _entries(root: Root, lost: set[bytes]) -> Iterator[tuple[ImageFault, bytes]]:
    """Yield the entries of lists whose objects are lost, with the oid of each."""
    for tree, called in _TREES.items():
        for key, value in _items(root, tree):
            if (oid := getattr(value, "_p_oid", None)) in lost:
                what = f"{called} {key} is lost"
                yield _dangling(f"{tree} {key}", what, "take it off the list", partial(discard, tree, key)), oid
    for name, parts in _items(root, roots.MISSIONS):
        for part in parts:
            if part._p_oid in lost:
                what = f"a part of the mission {name} is lost"
                yield _dangling(name, what, "take the mission away", partial(_drop_mission, name)), part._p_oid
    if roots.MEMORIES in root:
        yield from _parts(root, lost)


def _parts(root: Root, lost: set[bytes]) -> Iterator[tuple[ImageFault, bytes]]:
    """Yield the parts of memories, and segments of indexes, that are lost."""
    for number, chunk in trees_of(root)["chunks"].items():
        if chunk._p_oid in lost:
            what = f"part {number} of a memory is lost"
            # The memory that lacks it is then found as one, and forgotten.
            mend = partial(discard_memory, "chunks", number)
            yield _dangling(f"part {number}", what, "forget the memory", mend), chunk._p_oid
    for number, row in trees_of(root)["segments"].items():
        if row[-1]._p_oid in lost:
            what = f"segment {number} of the index of {row[0]} is lost"
            mend = partial(_rebuild_segment, number)
            yield _dangling(f"segment {number}", what, "build it anew", mend), row[-1]._p_oid


def _items(root: Root, tree: str) -> Iterator[tuple[str, Any]]:
    found: Any = root.get(tree)
    yield from found.items() if found is not None else ()


def _dangling(where: str, what: str, repair: str, mend: Callable[[Root], object]) -> ImageFault:
    return ImageFault("dangling reference", where, what, repair, mend)


def _drop_mission(name: str, root: Root) -> None:
    del root[roots.MISSIONS][name]
    for waiting in (roots.UNFOLDED, roots.QUEUED, roots.UNREMEMBERED):
        root[waiting].discard(name)


def _rebuild_segment(number: int, root: Root) -> None:
    """Build a segment of words or links of the parts that it was of; vectors are made anew in the background."""
    kept = trees_of(root)
    kind, about, first, last, *_ = kept["segments"].pop(number)
    if kind == "vectors":
        kept["embedded"].pop(about, None)
        return
    entries = list(entries_between(root, first, last))
    build = kinds.KINDS[kind].build
    if entries and build is not None:
        add_segment(root, NewSegment(kind, build(entries), first, last, about))


def entries_between(root: Root, first: int, last: int) -> Iterator[Entry]:
    """Yield the entries of the indexes for parts of these numbers."""
    kept = trees_of(root)
    for number, chunk in kept["chunks"].items(first, last):
        slots, document = own_slots(chunk), own_slots(own_slots(chunk)["document"])
        is_first = document["chunks"][0] == number
        beside = words_beside(document["source"], document["said_at"])
        yield Entry(number, document["title"], slots["text"], slots["heading"], is_first, beside)


def _fault_of_holder(root: Root, graph: ReferenceGraph, holder: int, lost: int) -> ImageFault:
    """Return the fault of an object that refers to a lost one; a slot that no codex declares can go."""
    where = f"{oid_text(oid_of(holder))} ({graph.kinds[holder]})"
    obj: Any = connection_of(root).get(oid_of(holder))
    slots = [slot for slot, value in _slots(obj).items() if getattr(value, "_p_oid", None) == oid_of(lost)]
    if slots and slots[0] not in (own_slots(obj).get(DIGESTS) or {}):
        what = f"its slot {slots[0]!r} refers to {oid_text(oid_of(lost))}, which is lost"
        return _dangling(where, what, "take the slot away", partial(_drop_slot, oid_of(holder), slots[0]))
    what = f"it refers to {oid_text(oid_of(lost))}, which is lost"
    return ImageFault("dangling reference", where, what, _BACKUP, None)


def _slots(obj: object) -> dict[str, object]:
    return dict(own_slots(obj)) if isinstance(obj, UvmObject) else {}


def _drop_slot(oid: bytes, slot: str, root: Root) -> None:
    obj: Any = connection_of(root).get(oid)
    delattr(obj, slot)
