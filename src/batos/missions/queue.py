"""The queue of missions that wait for a worker of this process, in the order in which they start."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.nodes.suspicion import DEATHS
from batos.image.records import Brief, Status, StatusWord
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.records import approvals


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
    #: The counted deaths of processes that ran it.
    deaths: int = 0

    @property
    def runs_alone(self) -> bool:
        """Test if no other mission may run beside it."""
        return self.deaths >= DEATHS


def new_entry(mission: str, brief: Mapping[str, Any]) -> QueueEntry:
    """Return the queue entry of a mission that has not begun, from its brief as it is stored."""
    patient = bool((brief.get("policy") or {}).get("wait_ollama"))
    return QueueEntry(mission, brief.get("priority") or 0, brief.get("deadline"), patient)


def entry_of(mission: str, brief: Brief, status: Status) -> QueueEntry:
    """Return the queue entry of a mission that is stored."""
    return replace(new_entry(mission, brief.value), deaths=status.deaths)


@dataclass(frozen=True, slots=True)
class SeenMission:
    """The state of a mission in its records.

    `is_answered`: committed but not folded in. `awaits`: waits for a person's answer. `is_elsewhere`: another node runs
    it. `attempt` counts how often it began to run; `claim` is the fence of the node that ran it last.
    """

    place: QueueEntry
    word: StatusWord
    attempt: int
    is_answered: bool
    awaits: bool = False
    is_elsewhere: bool = False
    claim: int = 0


def see_in(root: Root, image: LivingImage, mission: str) -> SeenMission:
    """Return the state of a mission in this root of an image. Raises: NotFound."""
    brief, status, thought = image.find(root, mission)
    # Only a mission that began can have been committed.
    answered = status.word == "running" and "answer" in own_slots(thought)
    awaits = status.word == "waiting" and approvals.is_waiting(root, status.reason)
    elsewhere = claims.is_elsewhere(root, status, image.fence)
    place = entry_of(mission, brief, status)
    return SeenMission(place, status.word, status.attempts, answered, awaits, elsewhere, status.claim)


def look(image: LivingImage, mission: str) -> SeenMission:
    """Return the state of a mission now. Raises: NotFound."""
    with image.snapshot() as root:
        return see_in(root, image, mission)


class Queue:
    """Entries by priority, the highest first, then by age: ids sort in the order in which missions were accepted.

    An entry that runs alone comes after all others, those with fewest deaths first, until a mission has ended in this
    process; until then, or until the process has lived for a while, it is held back. Only then is it known that the
    process lives without it: a killer who kills at random, soon after each start, would otherwise always meet the same
    mission.

    A dropped entry stays in the heap until it is next, or until dropped entries fill most of the heap.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, QueueEntry] = {}
        self._has_seen_end = False
        self._has_lived = False

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, mission: object) -> bool:
        return mission in self._places

    def count_ready(self) -> int:
        """Return the number of entries, or 0 if all of them are held back."""
        return 0 if self.holds_back() else len(self)

    def missions(self) -> tuple[str, ...]:
        """Return the missions that wait, in no order."""
        return tuple(self._places)

    def put(self, place: QueueEntry) -> None:
        """Add an entry; a mission that waits already keeps its place."""
        if place.mission not in self._places:
            self._places[place.mission] = place
            heapq.heappush(self._heap, self._key(place))

    def first(self) -> QueueEntry | None:
        """Return the next entry without removing it; None if nothing waits that may start."""
        place = self._next()
        return None if place is None or self._holds_back(place) else place

    def holds_back(self) -> bool:
        """Test if entries wait, and all of them are held back."""
        place = self._next()
        return place is not None and self._holds_back(place)

    def drop(self, mission: str) -> QueueEntry | None:
        """Remove and return the entry of a mission; None if the mission does not wait."""
        place = self._places.pop(mission, None)
        if len(self._heap) > 2 * len(self._places) + 64:
            self._sort()
        return place

    def see_end(self) -> None:
        """Take note that a mission has ended in this process."""
        if not self._has_seen_end:
            self._has_seen_end = True
            self._sort()

    def see_life(self) -> None:
        """Take note that the process has lived for a while."""
        self._has_lived = True

    def clear(self) -> tuple[QueueEntry, ...]:
        """Remove and return all entries."""
        waited = tuple(self._places.values())
        self._heap, self._places = [], {}
        return waited

    def _next(self) -> QueueEntry | None:
        while self._heap:
            place = self._places.get(self._heap[0][-1])
            if place is not None and self._key(place) == self._heap[0]:
                return place
            heapq.heappop(self._heap)
        return None

    def _holds_back(self, place: QueueEntry) -> bool:
        return place.runs_alone and not (self._has_seen_end or self._has_lived)

    def _sort(self) -> None:
        """Build the heap anew."""
        self._heap = [self._key(each) for each in self._places.values()]
        heapq.heapify(self._heap)

    def _key(self, place: QueueEntry) -> tuple[int, int, str]:
        """Return the sort key of an entry."""
        suspected = place.deaths if place.runs_alone and not self._has_seen_end else 0
        return suspected, -place.priority, place.mission
