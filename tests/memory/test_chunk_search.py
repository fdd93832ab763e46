"""The search of chunks: threads share one cache, which reads each segment once."""

from __future__ import annotations

import asyncio

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.image.memory_records import ChunkRange
from batos.memory.chunk_search import ChunkSearch, MemoryReach

SAID = ChunkRange(
    4, "d-1", "ann", "work", "mission", "current", "model", "2026-11-24T10:00:00Z", "/a.md", "m-1", "babs", "c-1"
)


@pytest.mark.parametrize(
    ("reach", "is_within"),
    [
        (MemoryReach("ann"), True),
        (MemoryReach("bob"), False),
        (MemoryReach(None, scopes=frozenset({"default"})), False),
        (MemoryReach(None, kinds=frozenset({"mission", "turn"})), True),
        (MemoryReach(None, kinds=frozenset({"document"})), False),
        (MemoryReach(None, standings=frozenset({"superseded"})), False),
        (MemoryReach(None, standings=None), True),
        (MemoryReach(None, sources=frozenset({"/a.md"}), missions=frozenset({"m-1"})), True),
        (MemoryReach(None, personas=frozenset({"robin"})), False),
        (MemoryReach(None, since="2026-11-24", until="2026-11-25"), True),
        (MemoryReach(None, until="2026-11-24"), False),
        (MemoryReach(None, since="2026-11-24T10:00:01Z"), False),
    ],
)
def test_a_reach_holds_what_has_all_that_it_names(reach: MemoryReach, is_within: bool) -> None:
    """Of a user, in scopes, of kinds and standings, from sources, missions and personas, and of a time."""
    assert reach.holds(SAID) is is_within


async def test_threads_search_while_documents_come_and_go() -> None:
    """Every search of a root finds what that root has, whatever others see meanwhile."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()

        def look() -> tuple[int, int]:
            with image.snapshot() as root:
                return search.search(root, "lamp", MemoryReach(None)).count, len(root["documents"])

        for number in range(12):
            came = [incoming(f"Lamp {number}.{part}", f"/{number}.{part}") for part in range(3)]
            remembering = asyncio.ensure_future(store.remember(came))
            seen = await asyncio.gather(*(asyncio.to_thread(look) for _ in range(3)))
            await remembering
            assert all(found == there for found, there in seen)
            if number % 3 == 2:
                forgetting = asyncio.ensure_future(store.forget([f"/{number}.0", f"/{number - 1}.1"]))
                seen = await asyncio.gather(*(asyncio.to_thread(look) for _ in range(3)))
                await forgetting
                assert all(found <= there for found, there in seen)
        with image.snapshot() as root:
            found = search.search(root, "lamp", MemoryReach(None))
            assert found.count == len(root["documents"]) == 28
            assert len(list(found.best(5))) == 5
