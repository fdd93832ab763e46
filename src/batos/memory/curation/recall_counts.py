"""Counts recalls: which memories were shown to missions or found by a person, and when; written in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_archives
from batos.memory.records.memory_segments import trees_of
from batos.objects.prototype import own_slots


def count_recalls(root: Root, recalled: Mapping[str, int], at: str) -> None:
    """Count that memories were recalled so often, the last time at a moment; those that are gone are left out.

    A recall of what a summary stands for counts for the summary.
    """
    recalls = trees_of(root)["recalls"]
    for name, times in recalled.items():
        document = root[roots.DOCUMENTS].get(name)
        while document is not None and (above := memory_archives.summary_of(document)):
            document = root[roots.DOCUMENTS].get(above)
        if document is not None:
            first = own_slots(document)["chunks"][0]
            before, last = recalls.get(first, (0, ""))
            recalls[first] = (before + times, max(last, at))


def find_last_recalls(root: Root) -> dict[int, str]:
    """Return when memories were last recalled, by the numbers of their first parts."""
    return {first: last for first, (_, last) in trees_of(root).get("recalls", {}).items()}


def shown_memories(provenance: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names of the memories that a mission was shown."""
    return (each["memory"] for each in provenance.get("recalled", ()) if "memory" in each)


class RecallTally:
    """Notes recalls in memory until somebody writes them: a read changes nothing of the image."""

    def __init__(self) -> None:
        self._noted: Counter[str] = Counter()

    def note(self, names: Iterable[str]) -> None:
        """Note that memories were recalled."""
        self._noted.update(set(names))

    def take(self) -> dict[str, int]:
        """Return what was noted, and begin anew."""
        taken, self._noted = dict(self._noted), Counter()
        return taken
