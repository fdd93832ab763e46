"""The memories that answers were made from: whether they are still there, and which answers quote one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from batos.image import memory_archives, memory_records, roots
from batos.image.memory_records import ChunkRange
from batos.image.roots import Root
from batos.objects.prototype import own_slots


def is_grounded(root: Root, mission: str) -> bool:
    """Tell whether all memories that a mission was shown are still there, and current or summarised."""
    return all(
        document is not None and own_slots(document)["standing"] in {"current", "summarised"}
        for document in map(root[roots.DOCUMENTS].get, _list_shown(root, mission).values())
    )


def answers_quoting(root: Root, names: Collection[str]) -> Iterator[str]:
    """Yield the names of the remembered answers that cite one of some memories. Reads each remembered answer."""
    folded = (ChunkRange(*row) for _, _, row in memory_archives.rows(root))
    for found in chain((each for _, each in memory_records.ranges_of(root)), folded):
        if found.kind == "mission":
            shown = _list_shown(root, found.mission)
            if any(shown.get(each["document"]) in names for each in _provenance(root, found.mission)["citations"]):
                yield found.document


def cites_what_is_gone(root: Root, mission: str) -> bool:
    """Tell whether an answer cites a memory that is not there any more."""
    shown = _list_shown(root, mission)
    cited = (shown.get(each["document"]) for each in _provenance(root, mission)["citations"])
    return any(name is not None and name not in root[roots.DOCUMENTS] for name in cited)


def _list_shown(root: Root, mission: str) -> Mapping[int, str]:
    """Return the memories that a mission was shown, by the numbers that its citations name."""
    recalled = _provenance(root, mission)["recalled"]
    return {each["document"]: each["memory"] for each in recalled if "memory" in each}


def _provenance(root: Root, mission: str) -> Mapping[str, Any]:
    record = roots.find_record(root, mission)
    nothing: Mapping[str, Any] = {"recalled": (), "citations": ()}
    return nothing if record is None else own_slots(record.thought).get("provenance", nothing)
