"""Vectors of chunks: what is missing is told, what is added is found, and a model that goes leaves nothing."""

from __future__ import annotations

import numpy as np
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory import backfill
from batos.memory.records import memory_segments
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery, UncommittedMemories, VectorQuery
from batos.memory.search.metadata import MemoryReach

ALL = MemoryReach(None)


async def test_vectors_are_added_for_what_lacks_them() -> None:
    """Of chunks that there are; a second time nothing is added, and another model lacks all."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("Lamp."), incoming("Oil."), incoming("Fog.")])

        def change(root: object) -> None:
            matrix = np.eye(4, 8)
            assert backfill.missing_vectors(root, "m") == [1, 2, 3]  # type: ignore[arg-type]
            assert backfill.add_vectors(root, "m", [1, 3, 99], matrix[:3]) == 2  # type: ignore[arg-type]
            assert backfill.add_vectors(root, "m", [1], matrix[:1]) == 0  # type: ignore[arg-type]
            assert backfill.missing_vectors(root, "m") == [2]  # type: ignore[arg-type]
            assert backfill.missing_vectors(root, "n", 2) == [1, 2]  # type: ignore[arg-type]
            assert backfill.missing_count(root, "n") == 3  # type: ignore[arg-type]

        await image.writer.apply(change)
        search = ChunkSearch()
        with image.snapshot() as root:
            query = RecallQuery("", VectorQuery("m", np.eye(4, 8)[1]), "vectors")
            assert [(hit.id, hit.score) for hit in search.recall(root, query, ALL).parts] == [(3, 1.0), (1, 0.0)]
            assert search.recall(root, RecallQuery("", VectorQuery("n", np.eye(4, 8)[1]), "vectors"), ALL).parts == ()
            assert search.vectors_of(root, "m", [2, 3])[0].tolist() == [3]
        await image.writer.apply(lambda root: memory_segments.drop_vectors(root, "m"))
        with image.snapshot() as root:
            assert backfill.missing_count(root, "m") == 3
            assert search.recall(root, query, ALL).parts == ()
            assert {row.kind for _, row in memory_segments.segments_of(root)} == {"text", "links"}


async def test_what_is_forgotten_has_no_vector() -> None:
    """Neither in the image nor in who searched before."""
    async with open_image(None) as image:
        store, search = store_of(image), ChunkSearch()
        await store.remember([incoming("Lamp.", "/a"), incoming("Oil.", "/b")])
        await image.writer.apply(lambda root: backfill.add_vectors(root, "m", [1, 2], np.eye(2)))
        query = RecallQuery("", VectorQuery("m", [0.8, 0.6]), "vectors")
        with image.snapshot() as root:
            assert len(search.recall(root, query, ALL).parts) == 2
            assert len(search.recall(root, query, ALL, extra=UncommittedMemories()).parts) == 2
        await store.forget(["/a"])
        with image.snapshot() as root:
            assert [hit.id for hit in search.recall(root, query, ALL).parts] == [2]
            assert backfill.missing_count(root, "m") == 0
