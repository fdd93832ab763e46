"""Evidence for suspected missions: a process that died while they waited in it, and none of them ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.nodes import claims
from batos.image.records import Status
from batos.image.roots import Root

#: The counted deaths of its process after which a mission is suspected, and runs alone.
DEATHS: Final = 2


def note(root: Root, fence: int) -> None:
    """Note the suspected missions that wait now, in the process of this fence; within a change."""
    if roots.SUSPECTED not in root:
        root[roots.SUSPECTED] = PersistentMapping()
    waiting = roots.list_oldest_queued(root)
    root[roots.SUSPECTED][str(fence)] = tuple(name for name, record in waiting if record.status.deaths >= DEATHS)


def drop(root: Root, fence: int) -> None:
    """Drop the note of a process that ends as it should; within a change."""
    if roots.SUSPECTED in root:
        root[roots.SUSPECTED].pop(str(fence), None)


def has_notes_of_dead(root: Root, fence: int) -> bool:
    """Test if a process died that had noted something."""
    return any(True for _ in _notes_of_dead(root, fence))


def acquit(root: Root, fence: int) -> list[str]:
    """Drop the notes of processes that died, and return the missions for which they speak; within a change.

    If no mission ran alone in such a process, those that waited are not the reason of its death: what counts against
    them is forgotten as far as they would have to run alone anew. Do this before deaths are counted.
    """
    acquitted: list[str] = []
    for other, names in list(_notes_of_dead(root, fence)):
        del root[roots.SUSPECTED][other]
        if not any(status.alone for status in _running_statuses(root, int(other))):
            found = ((name, roots.find_record(root, name)) for name in names)
            waited = [(name, each.status) for name, each in found if each is not None and each.status.word == "queued"]
            for name, status in waited:
                if status.deaths > DEATHS:
                    status.deaths = DEATHS
                    acquitted.append(name)
    return acquitted


def _notes_of_dead(root: Root, fence: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the notes of processes that died: of all others on an image that is one process's."""
    for other, names in (root.get(roots.SUSPECTED) or {}).items():
        if fence == 0 or claims.has_ended(root.get(roots.NODES, {}), int(other)):
            yield other, names


def _running_statuses(root: Root, fence: int) -> Iterator[Status]:
    """Yield the statuses of the missions that run according to a process that died."""
    names = root[roots.UNFOLDED] if fence == 0 else root[roots.NODES].get(fence, {"claims": ()})["claims"]
    for name in names:
        record = roots.find_record(root, name)
        if record is not None and record.status.word == "running" and fence in (0, record.status.claim):
            yield record.status
