"""Finds what is remembered for a mission's question: the same parts in every attempt, as long as they are there."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Final

from batos.concurrency.commit_thread import finish_despite_cancel
from batos.memory.claims import cues
from batos.memory.evidence import Passage
from batos.memory.reach import WITH_HISTORY, MemoryReach
from batos.memory.records import memory_segments
from batos.memory.search.chunk_search import RecallQuery, VectorQuery
from batos.memory.search.recollection import Recollection, whole_weight
from batos.memory.stated_sentences import repeats
from batos.minds.context import MindContext
from batos.protocol.brief import DEFAULT_SCOPE, NO_MEMORY, MissionBrief

#: The most parts that are recalled beside the mission's own files.
MOST_REMEMBERED: Final = 8
#: The most parts of pinned memories, which are shown before these.
MOST_PINNED: Final = 4
#: The journal note of the parts that were found has them under this name.
NOTE: Final = "remembered"


async def find_passages(context: MindContext, query: str) -> tuple[Passage, ...]:
    """Return the pinned parts and those that match a query; none where the brief wants none.

    A later attempt finds the same parts again, so that its prompts are the same and paid answers are used.
    """
    recollection, reach = context.io.recollection, reach_of(context.mission.brief)
    if recollection is None or reach is None or not memory_segments.change_of(context.mission.root):
        return ()
    if cues.asks_history(query):
        reach = replace(reach, standings=WITH_HISTORY)
    root, key = context.mission.root, _key(query)
    for note in context.trace.decided.notes():
        if NOTE in note and note[NOTE]["query"] == key:
            return _note_found(context, reach, recollection.passages_of(root, note[NOTE]["found"], reach))
    pinned = recollection.pinned_passages(root, reach, MOST_PINNED)
    known = {each.chunk for each in pinned}
    matching = await _search(recollection, context, query, reach)
    # A person's own words are no evidence where the very same are said again.
    fresh = (each for each in matching if not (each.mission and repeats(query, each.text)))
    found = (*pinned, *(each for each in fresh if each.chunk not in known))
    told = list(dict.fromkeys((each.chunk, each.why, whole_weight(each)) for each in found))
    context.trace.decided.note(**{NOTE: {"query": key, "found": told}})
    return _note_found(context, reach, found)


def _note_found(context: MindContext, reach: MemoryReach, found: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Note what was found, unless nothing is remembered in which it could be."""
    recollection = context.io.recollection
    if found or (recollection is not None and recollection.has_any(context.mission.root, reach)):
        context.trace.note_memory(found)
    return found


async def _search(
    recollection: Recollection, context: MindContext, query: str, reach: MemoryReach
) -> tuple[Passage, ...]:
    """Search in a thread: the indexes are read there for the first time."""
    asked = RecallQuery(query, await _vector(context, query))
    # A mission with files of its own is answered from these, and from what was given or said, not from older answers.
    alone, root = not context.mission.passages, context.mission.root
    work = asyncio.to_thread(recollection.find_passages, root, asked, reach, MOST_REMEMBERED, alone)
    return await finish_despite_cancel(asyncio.ensure_future(work))


async def _vector(context: MindContext, query: str) -> VectorQuery | None:
    """Return the query's vector as the journal has it, or gets it; None where no part has a vector to compare."""
    meanings = context.io.meanings
    if meanings is None or meanings.digest not in memory_segments.embedded_digests(context.mission.root):
        return None
    vectors = await meanings.vectors([query], f"{NOTE}/{_key(query)}#0")
    return None if not vectors else VectorQuery(meanings.digest, vectors[0])


def _key(query: str) -> str:
    return hashlib.sha256(query.encode()).hexdigest()[:16]


def reach_of(brief: MissionBrief) -> MemoryReach | None:
    """Return the memories that a mission may use; None: it wants none."""
    asked = brief.policy.memory if brief.policy else None
    if asked == NO_MEMORY:
        return None
    scopes = {asked} if asked else {DEFAULT_SCOPE, *([brief.conversation] if brief.conversation else [])}
    return MemoryReach(brief.user, frozenset(scopes))
