"""Folds memories into a summary that stands for them, all in one change of the image, and unfolds them again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_archives, memory_places, memory_records
from batos.memory.records.memory_archives import PART_SLOTS, ArchivedPart, Parts
from batos.memory.records.memory_claims import ClaimMark
from batos.memory.records.memory_records import NewDocument
from batos.memory.records.memory_segments import NewSegment, count_change, find_tree
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound

#: The place of the memory that marked a span, in a mark (memory/records/memory_claims.py).
_BY: Final = ClaimMark._fields.index("by")
#: The slot of a summary that names the memories that it stands for.
STANDS_FOR: Final = "of"


@dataclass(frozen=True, slots=True)
class FoldedRegion:
    """A summary with its indexes, and the memories that it stands for: their parts, and what indexes these.

    `first` is the number of the summary's first part. `about` are further slots of the summary: who wrote it, and why.
    """

    summary: NewDocument
    first: int
    segments: Mapping[str, bytes]
    parts: Parts
    archived: Sequence[NewSegment]
    about: Mapping[str, Any] = field(default_factory=dict)


def fold(root: Root, region: FoldedRegion) -> bool:
    """Put a summary in the place of its memories; False if one of these is gone, or no longer as it was."""
    if any(foldable_parts(root, name) != list(parts) for name, parts in region.parts.items()):
        return False
    memory_records.add(root, [region.summary], region.first, region.segments)
    summary = root[roots.DOCUMENTS][region.summary.name]
    for name, value in {STANDS_FOR: tuple(region.parts), **region.about}.items():
        setattr(summary, name, value)
    count_change(root, memory_archives.put_away(root, region.summary.name, region.parts, region.archived))
    return True


def foldable_parts(root: Root, name: str) -> list[ArchivedPart] | None:
    """Return the parts of a memory that may be folded; None for one that may not, or is not there.

    A memory is left alone if it is pinned or not current, if it is a fact, if another statement gave way to one of its
    own or the other way round, or if a part has more than a text.
    """
    document = root[roots.DOCUMENTS].get(name)
    if document is None or name in pinned_names(root):
        return None
    slots = own_slots(document)
    if slots["standing"] != "current" or slots["kind"] == "fact" or slots.get("marked_in"):
        return None
    parts = [own_slots(each) for each in memory_records.chunks_of(root, document)]
    if any(each.keys() - PART_SLOTS or any(mark[_BY] for mark in each.get("marks", ())) for each in parts):
        return None
    return [ArchivedPart(**{name: value for name, value in each.items() if name != "document"}) for each in parts]


def pinned_names(root: Root) -> frozenset[str]:
    """Return the names of the memories that a person has pinned."""
    return frozenset(key.rpartition("\0")[2] for key in find_tree(root, "pins"))


def unfold(root: Root, names: Iterable[str]) -> list[str]:
    """Bring the memories of summaries back as they were, and remove the summaries; return the names of the memories.

    A summary that is folded itself comes back first.
    """
    back: list[str] = []
    left = dict.fromkeys(names)
    while left:
        outer = [name for name in left if not list_above(root, [name])]
        left.update(dict.fromkeys(list_above(root, left)))
        left = {name: None for name in left if name not in outer}
        if outer:
            back += memory_archives.bring_back(root, outer)
            memory_records.forget(root, outer)
    back = [name for name in back if name in root[roots.DOCUMENTS]]
    count_change(root, [(first, first) for first in (_first(root, each) for each in back)])
    return back


def unfold_covering(root: Root, names: Iterable[str]) -> None:
    """Bring back what the summaries stand for that stand for one of some memories; those of nothing are left."""
    known = (root[roots.DOCUMENTS][name] for name in names if name in root[roots.DOCUMENTS])
    above = dict.fromkeys(filter(None, map(memory_archives.summary_of, known)))
    if above:
        unfold(root, above)


def unfold_places(root: Root, documents: Iterable[NewDocument], copies: Iterable[tuple[str, str]]) -> None:
    """Bring back what is folded and came from places that new documents, and copies of documents, come from."""
    taken = [memory_places.find_by_source(root, each.user, each.scope, each.place) for each in documents]
    for name, place in copies:
        if name in root[roots.DOCUMENTS]:
            slots = own_slots(root[roots.DOCUMENTS][name])
            before = memory_places.find_by_source(root, slots["user"], slots["scope"], place)
            taken.append(None if before == name else before)
    unfold_covering(root, filter(None, taken))


def unfold_all(root: Root, names: Collection[str]) -> None:
    """Bring back what stands under summaries among some memories, and what is covered by one; the summaries go."""
    unfold_covering(root, names)
    left = [name for name in names if memory_archives.is_summary(root, name)]
    if left:
        unfold(root, left)


def find_summary(root: Root, named: str, user: str | None) -> str:
    """Return the name of a summary that stands for others. Raises: NotFound: there is none of this name."""
    found = memory_records.find_document(root, named, user)
    name: str = own_slots(found)["name"]
    if not memory_archives.is_summary(root, name):
        above = memory_archives.summary_of(found)
        remedy = f"It is summarised in {above}: undo that." if above else "`batos memories` lists them by their type."
        raise NotFound(f"{named!r} is no summary of others", field="args.undo", remedy=remedy)
    return name


def list_below(root: Root, name: str) -> list[str]:
    """Return the names of all memories that a summary stands for, also through other summaries."""
    found = []
    for each in own_slots(root[roots.DOCUMENTS][name]).get(STANDS_FOR, ()):
        found += [each, *list_below(root, each)]
    return found


def list_above(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of all summaries that stand for one of some memories, also through other summaries."""
    found: dict[str, None] = {}
    for name in names:
        above = memory_archives.summary_of(root[roots.DOCUMENTS][name])
        while above:
            found[above] = None
            above = memory_archives.summary_of(root[roots.DOCUMENTS][above])
    return list(found)


def _first(root: Root, name: str) -> int:
    document: UvmObject = root[roots.DOCUMENTS][name]
    return int(own_slots(document)["chunks"][0])
