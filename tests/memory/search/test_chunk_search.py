"""The search of chunks: threads share one cache, which reads each segment once."""

from __future__ import annotations

import asyncio
import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.image.roots import Root
from batos.memory.backfill import add_vectors
from batos.memory.records import memory_segments, memory_standings
from batos.memory.records.memory_records import ChunkText, NewDocument
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery, UncommittedMemories, VectorQuery
from batos.memory.search.metadata import MemoryReach


async def test_threads_search_while_documents_come_and_go() -> None:
    """Every search of a root finds what that root has, whatever others see meanwhile."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()

        def look() -> tuple[int, int]:
            with image.snapshot() as root:
                return search.recall(root, RecallQuery("lamp"), MemoryReach(None)).count, len(root["documents"])

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
            found = search.recall(root, RecallQuery("lamp"), MemoryReach(None))
            assert found.count == len(root["documents"]) == 28
            assert len(list(found.best(5))) == 5


async def test_uncommitted_memories_are_searched_beside_those_of_the_root() -> None:
    """By words and by vectors, within reach only; the next search does not know them."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp burns oil.")])
        await image.writer.apply(lambda root: add_vectors(root, "m", [1], np.eye(2)[:1]))
        parts = (ChunkText(0, "", "The lamp burns gas."), ChunkText(20, "", "Gulls cry."))
        own = NewDocument("d-x", "ann", "default", "", "Own", "text/plain", "0", 9, "model", "2026-11-25", parts)
        extra, search = UncommittedMemories((own,), np.eye(2)[::-1]), ChunkSearch()
        with image.snapshot() as root:
            found = search.recall(root, RecallQuery("lamp gas"), MemoryReach("ann"), extra=extra)
            assert [each.id for each in found.parts] == [-1, 1]
            best = next(found.best(1)).chunk
            assert (best.text, best.document.title, best.number) == ("The lamp burns gas.", "Own", -1)
            near = RecallQuery("", VectorQuery("m", [1.0, 0.0]), "vectors")
            nearest = search.recall(root, near, MemoryReach(None), extra=extra)
            assert [(each.id, each.score) for each in nearest.parts] == [(-2, 1.0), (1, 1.0), (-1, 0.0)]
            assert search.recall(root, RecallQuery("gas"), MemoryReach("bob"), extra=extra).count == 0
            assert search.recall(root, RecallQuery("gas"), MemoryReach("ann")).count == 0


async def test_a_reader_of_an_older_root_sees_standings_of_that_root() -> None:
    """And nothing that came after it, also where the search has seen the newest."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()
        name = (await store.remember([incoming("The lamp burns oil.")]))["remembered"][0]["document"]
        with image.snapshot() as old:
            await store.remember([incoming("The lamp burns gas.")])
            await image.writer.apply(lambda root: memory_standings.set_standing(root, name, "superseded"))
            with image.snapshot() as new:
                assert [hit.id for hit in search.recall(new, RecallQuery("lamp"), MemoryReach(None)).parts] == [2]
            assert [hit.id for hit in search.recall(old, RecallQuery("lamp"), MemoryReach(None)).parts] == [1]


async def test_an_older_root_has_its_own_standings() -> None:
    """The documents within reach are those of the root that reads, also if the cache has seen newer ones."""
    async with open_image(None) as image:
        store, search, reach = store_of(image), ChunkSearch(), MemoryReach(None)
        lines = await store.remember([incoming("Lamp one.", "/1"), incoming("Lamp two.", "/2")])
        names = [each["document"] for each in lines["remembered"]]

        def found(root: Root) -> list[int]:
            return sorted(hit.id for hit in search.recall(root, RecallQuery("lamp"), reach).parts)

        with image.snapshot() as before:
            assert found(before) == [1, 2]
            await image.writer.apply(lambda root: memory_standings.set_standing(root, names[0], "superseded"))
            await store.remember([incoming("Lamp three.", "/3")])
            with image.snapshot() as after:
                assert found(after) == [2, 3]
                firsts, chunks = search.documents(after, reach)
                assert (firsts.tolist(), chunks) == ([3, 2], 2)
            assert found(before) == [1, 2]
            firsts, chunks = search.documents(before, reach)
            assert (firsts.tolist(), chunks) == ([2, 1], 2)


async def test_a_root_from_before_what_is_known_is_read_whole() -> None:
    """A cache that began with a newer root finds what an older one has."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()
        await store.remember([incoming("Lamp one.", "/1")])
        with image.snapshot() as before:
            assert before["memories"]["change"]
            await store.remember([incoming("Lamp one again.", "/1"), incoming("Lamp two.", "/2")])
            with image.snapshot() as after:
                assert [hit.id for hit in search.recall(after, RecallQuery("again"), MemoryReach(None)).parts] == [2]
            firsts, _ = search.documents(before, MemoryReach(None))
            assert firsts.tolist() == [1]


async def test_who_reads_an_older_root_needs_no_table_of_all_changes() -> None:
    """The memory of such a search grows with the documents, not with these times the changes."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming(f"Lamp {number}.") for number in range(200)])
        search, changes = ChunkSearch(), [(number, number) for number in range(1_000_000, 1_020_000)]
        with image.snapshot() as older:

            def look() -> tuple[list[int], int]:
                firsts, chunks = search.documents(older, MemoryReach(None))
                return firsts.tolist(), chunks

            before = look()
            await image.writer.apply(lambda root: memory_segments.count_change(root, changes))
            with image.snapshot() as root:
                search.documents(root, MemoryReach(None))
            tracemalloc.start()
            try:
                assert await asyncio.to_thread(look) == before
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        assert len(before[0]) == 200
        assert peak < 2_500_000


@given(
    changes=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=5),
    gone=st.sets(st.integers(1, 10), max_size=5),
)
@settings(max_examples=20)
async def test_an_older_root_is_read_as_it_was(changes: list[tuple[int, int]], gone: set[int]) -> None:
    """Whatever documents changed since, in ranges that overlap or not."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming(f"Lamp {number}.", f"/{number}") for number in range(10)])
        search, pairs = ChunkSearch(), [(first, first + more) for first, more in changes]
        with image.snapshot() as older:
            before = search.documents(older, MemoryReach(None))[0].tolist()
            for number in sorted(gone):
                await store_of(image).forget([f"/{number - 1}"])
            await image.writer.apply(lambda root: memory_segments.count_change(root, pairs))
            with image.snapshot() as root:
                assert len(search.documents(root, MemoryReach(None))[0]) == 10 - len(gone)
            assert search.documents(older, MemoryReach(None))[0].tolist() == before


async def test_names_of_other_users_hide_no_shorter_ones() -> None:
    """Neither in the question nor in a text that leads on: a person finds the same whatever others remember."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()
        await store.remember([incoming("# Holm\n\nAn island.", "/h"), incoming("Gulls live on Holm Light Rock.", "/g")])

        def found(query: str) -> list[tuple[int, bool, str]]:
            with image.snapshot() as root:
                parts = search.recall(root, RecallQuery(query), MemoryReach("ann")).parts
            return [(each.id, each.is_named, each.link.name if each.link else "") for each in parts]

        before = [found("Who keeps Holm Light?"), found("Where do gulls live?")]
        assert before == [[(1, True, ""), (2, False, "")], [(2, False, ""), (1, False, "holm")]]
        await store.remember([incoming("# Holm Light\n\nBob keeps it.", "/b", user="bob")])
        assert [found("Who keeps Holm Light?"), found("Where do gulls live?")] == before
