"""The wordings of a memory: what a person made of a text by edits, and what is left of it as history."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.memory.records.memory_standings import standing_of
from batos.objects.prototype import own_slots
from batos.records.memory_lineage import EDITS


def is_same_memory(root: Root, one: str, other: str) -> bool:
    """Test if two documents are wordings of one memory, as far as edits lead from one text to the next."""
    return not _earlier(root, one).isdisjoint(_earlier(root, other))


def wordings_of(root: Root, name: str) -> list[str]:
    """Return the names of all wordings of a memory, its own one too. Reads all documents of its source."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    place = slots["user"], slots["scope"], slots["source"]
    names = [row.document for row in memory_records.all_ranges(root) if (row.user, row.scope, row.source) == place]
    return [each for each in names if each == name or is_same_memory(root, each, name)]


def history_of(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of the edited texts that memories leave behind: earlier wordings, and others of their sources.

    Of a memory that is an edited text itself these are only the wordings before it.
    """
    documents = root[roots.DOCUMENTS]
    edited = {row.document: row for _, row in memory_records.ranges_of(root) if row.standing == "edited"}
    whole = {each for each in names if standing_of(root, each) != "edited"}
    slots = [own_slots(documents[each]) for each in whole]
    places = {(each["user"], each["scope"], each["source"]) for each in slots if each["source"]}
    found = {each for name in names for each in _earlier(root, name)}
    found |= {name for name, row in edited.items() if (row.user, row.scope, row.source) in places}
    found |= {name for name in edited if not whole.isdisjoint(_earlier(root, name))}
    return sorted((found & edited.keys()) - set(names))


def edited_summaries(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of the texts that a person once made of some summaries by edits. Reads all summaries."""
    if not names:
        return []
    rows = (row.document for _, row in memory_records.ranges_of(root) if row.kind == "summary")
    return sorted(each for each in {*rows} - {*names} if not _earlier(root, each).isdisjoint(names))


def _earlier(root: Root, name: str) -> set[str]:
    """Return the name of a document, and those of the wordings before it that are there."""
    found: set[str] = set()
    left: Iterable[str] = [name]
    while left := [each for each in left if each in root[roots.DOCUMENTS] and each not in found]:
        found.update(left)
        left = [before for each in left for before in own_slots(root[roots.DOCUMENTS][each]).get(EDITS, ())]
    return found
