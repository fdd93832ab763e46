"""The queue of missions that wait for a worker of this process, in the order in which they start."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from batos.image.records import Brief, Status


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """The fields of a brief that decide when its mission starts, so that waiting briefs are not read again.

    `deadline` is ISO 8601 in UTC, to the millisecond; such texts sort by time.
    """

    mission: str
    priority: int = 0
    deadline: str | None = None
    #: Waits for the daemon instead of failing when it is away.
    waits_for_ollama: bool = False
    #: Runs with no other mission beside it.
    runs_alone: bool = False


def new_entry(mission: str, brief: Mapping[str, Any]) -> QueueEntry:
    """Return the queue entry of a mission that has not begun, from its brief as it is stored."""
    patient = bool((brief.get("policy") or {}).get("wait_ollama"))
    return QueueEntry(mission, brief.get("priority") or 0, brief.get("deadline"), patient)


def entry_of(mission: str, brief: Brief, status: Status, deaths_allowed: int) -> QueueEntry:
    """Return the queue entry of a mission; after `deaths_allowed` counted deaths of its process it runs alone."""
    return replace(new_entry(mission, brief.value), runs_alone=status.deaths >= deaths_allowed)


class Queue:
    """Entries by priority, the highest first, then by age: ids sort in the order in which missions were accepted.

    A dropped entry stays in the heap until it is next, or until dropped entries fill most of the heap.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._places: dict[str, QueueEntry] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, mission: object) -> bool:
        return mission in self._places

    def put(self, place: QueueEntry) -> None:
        """Add an entry; a mission that waits already keeps its place."""
        if place.mission not in self._places:
            self._places[place.mission] = place
            heapq.heappush(self._heap, _key(place))

    def first(self) -> QueueEntry | None:
        """Return the next entry without removing it; None if nothing waits."""
        while self._heap:
            place = self._places.get(self._heap[0][1])
            if place is not None and _key(place) == self._heap[0]:
                return place
            heapq.heappop(self._heap)
        return None

    def drop(self, mission: str) -> QueueEntry | None:
        """Remove and return the entry of a mission; None if the mission does not wait."""
        place = self._places.pop(mission, None)
        if len(self._heap) > 2 * len(self._places) + 64:
            self._heap = [_key(each) for each in self._places.values()]
            heapq.heapify(self._heap)
        return place

    def clear(self) -> tuple[QueueEntry, ...]:
        """Remove and return all entries."""
        waited = tuple(self._places.values())
        self._heap, self._places = [], {}
        return waited


def _key(place: QueueEntry) -> tuple[int, str]:
    """Return the sort key of an entry."""
    return -place.priority, place.mission
