"""The wordings of a memory: what edits made of it, and the answers that quote it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

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


def is_grounded(root: Root, mission: str) -> bool:
    """Test if all memories that a mission was shown are still there, and current or summarised.

    Of the answers among them this is asked too.
    """
    left, asked = [mission], {mission}
    while left:
        for document in map(root[roots.DOCUMENTS].get, _list_shown(root, left.pop()).values()):
            if document is None or own_slots(document)["standing"] not in {"current", "summarised"}:
                return False
            made_by = own_slots(document)["mission"] if own_slots(document)["kind"] == "mission" else mission
            if made_by not in asked:
                asked.add(made_by)
                left.append(made_by)
    return True


def answers_quoting(root: Root, names: Collection[str]) -> Iterator[str]:
    """Yield the names of the remembered answers that cite one of some memories, or an answer that is yielded.

    Reads each remembered answer once.
    """
    citing: dict[str, list[str]] = {}
    for found in memory_records.all_ranges(root):
        if found.kind == "mission":
            for name in list_cited(root, found.mission):
                citing.setdefault(name, []).append(found.document)
    left, told = list(names), set[str]()
    while left:
        fresh = dict.fromkeys(each for each in citing.get(left.pop(), ()) if each not in told)
        told.update(fresh)
        left += fresh
        yield from fresh


def cites_what_is_gone(root: Root, mission: str) -> bool:
    """Test if an answer cites a memory that is not there any more."""
    return any(name not in root[roots.DOCUMENTS] for name in list_cited(root, mission))


def list_cited(root: Root, mission: str) -> set[str]:
    """Return the memories that an answer cites."""
    shown = _list_shown(root, mission)
    cited = (shown.get(each["document"]) for each in _provenance(root, mission)["citations"])
    return {name for name in cited if name is not None}


def _list_shown(root: Root, mission: str) -> Mapping[int, str]:
    """Return the memories that a mission was shown, by the numbers that its citations name."""
    recalled = _provenance(root, mission)["recalled"]
    return {each["document"]: each["memory"] for each in recalled if "memory" in each}


def _provenance(root: Root, mission: str) -> Mapping[str, Any]:
    record = roots.find_record(root, mission)
    nothing: Mapping[str, object] = {"recalled": (), "citations": ()}
    return nothing if record is None else own_slots(record.thought).get("provenance", nothing)
