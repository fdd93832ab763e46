"""The memories that answers were made from: whether they are still there, and which answers quote one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.objects.prototype import own_slots


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
            for name in _list_cited(root, found.mission):
                citing.setdefault(name, []).append(found.document)
    left, told = list(names), set[str]()
    while left:
        fresh = dict.fromkeys(each for each in citing.get(left.pop(), ()) if each not in told)
        told.update(fresh)
        left += fresh
        yield from fresh


def cites_what_is_gone(root: Root, mission: str) -> bool:
    """Test if an answer cites a memory that is not there any more."""
    return any(name not in root[roots.DOCUMENTS] for name in _list_cited(root, mission))


def _list_cited(root: Root, mission: str) -> set[str]:
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
