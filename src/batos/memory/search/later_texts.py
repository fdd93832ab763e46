"""Find what was said later than what a question found: the next word of a talk, and what took a statement's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory import thresholds
from batos.memory.records import memory_claims, memory_records
from batos.memory.search.chunk_search import FoundChunk
from batos.memory.search.metadata import MESSAGE
from batos.memory.segmentation import stems
from batos.objects.prototype import UvmObject, own_slots

#: Later messages of a talk, and texts that took the place of statements, at most.
MOST_LATER, MOST_SUCCESSORS = 2, 3
#: The reason why what took the place of a statement is shown.
INSTEAD: Final = "takes the place of an earlier text"


def later_of(best: Sequence[FoundChunk], near: Iterable[tuple[float, FoundChunk]]) -> list[FoundChunk]:
    """Return messages that are later than those that were found of their talk or speaker, the nearest first.

    The last word holds, if it bears on the question at all.
    """
    newest: dict[str, str] = {}
    for each in best:
        slots = own_slots(own_slots(each.chunk)["document"])
        for talk in _talks(slots):
            newest[talk] = max(newest.get(talk, ""), memory_claims.stated_at(slots))
    known = {own_slots(each.chunk)["number"] for each in best}
    later = [
        (share, each)
        for share, each in near
        if share >= thresholds.RECALL_LATER and own_slots(each.chunk)["number"] not in known and _is_later(each, newest)
    ]
    return [each for _, each in sorted(later, key=lambda pair: -pair[0])[:MOST_LATER]]


def _is_later(found: FoundChunk, newest: Mapping[str, str]) -> bool:
    slots = own_slots(own_slots(found.chunk)["document"])
    return any(talk in newest and newest[talk] < memory_claims.stated_at(slots) for talk in _talks(slots))


def _talks(slots: Mapping[str, Any]) -> list[str]:
    """Return what joins a message to others: its talk, and in its file who said it."""
    if slots["kind"] != MESSAGE:
        return []
    talk = [f"talk {slots['conversation']}"] if slots["conversation"] else []
    file = slots["source"].partition("#")[0]
    return talk + ([f"speaker {file} {slots['speaker']}"] if slots["speaker"] else [])


def successors_of(root: Root, found: Iterable[tuple[UvmObject, float]]) -> Iterator[tuple[UvmObject, float]]:
    """Yield what took the place of statements in parts that were found, with their weights, and what took its place.

    A question is near to the words of the older text, often not to those of the newer one: without it a model reads
    only what no longer holds. Of a document the part is taken that shares most words with the statement.
    """
    queue = list(found)
    known = {own_slots(each)["document"] for each, _ in queue}
    first = len(queue)
    for part, weight in queue:
        for mark in memory_claims.marks_of(part):
            newer = root[roots.DOCUMENTS].get(mark.by) if mark.standing == "superseded" else None
            if newer is None or newer in known or len(queue) - first >= MOST_SUCCESSORS:
                continue
            known.add(newer)
            said = frozenset(stems(own_slots(part)["text"][mark.start : mark.end]))
            taken = max(memory_records.chunks_of(root, newer), key=lambda each: _count_shared(said, each))
            queue.append((taken, weight))
            yield taken, weight


def _count_shared(said: frozenset[str], part: UvmObject) -> int:
    return len(said.intersection(stems(own_slots(part)["text"])))
