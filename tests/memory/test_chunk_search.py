"""The search of chunks: threads share one cache, which reads each segment once."""

from __future__ import annotations

import asyncio

from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.chunk_search import ChunkSearch, MemoryReach


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
