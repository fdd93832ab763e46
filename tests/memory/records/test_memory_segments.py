"""Segments are listed by kind, and what is taken out changes those that hold it and no others."""

from __future__ import annotations

from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document, indexed_numbers

from batos.image.roots import Root
from batos.memory.records import memory_segments
from batos.memory.records.memory_segments import NewSegment, as_ranges


async def test_segments_are_replaced_together_or_not() -> None:
    """One that is gone meanwhile leaves all as they are."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"))
            add(root, document("d-2"))
            assert not memory_segments.replace_segments(root, [1, 9], NewSegment("text", b"x", 1, 4))
            assert memory_segments.replace_segments(root, [1, 2], NewSegment("text", b"\1\2\3\4", 1, 4))
            assert dict(memory_segments.segments_of(root)).keys() == {3}

        await image.writer.apply(change)


async def test_only_segments_that_hold_it_are_written_anew() -> None:
    """A segment of other chunks keeps its number."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"))
            add(root, document("d-2"))
            memory_segments.take_out(root, [range(3, 4)])
            assert [number for number, _ in memory_segments.segments_of(root)] == [1, 3]
            assert indexed_numbers(root) == [[1, 2], [4]]
            assert list(memory_segments.present_ranges(root)) == [(1, 2), (4, 4)]

        await image.writer.apply(change)


async def test_kinds_are_kept_apart() -> None:
    """A kind is listed alone, with what its segments are about and where their chunks are."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"))
            memory_segments.add_segment(root, NewSegment("vectors", b"\1\2", 1, 2, "digest"))
            ((_, row),) = memory_segments.segments_of(root, "vectors")
            assert (row.about, row.first, row.last, row.size, row.segment.kind) == ("digest", 1, 2, 2, "vectors")
            assert len(list(memory_segments.segments_of(root))) == 2

        await image.writer.apply(change)


async def test_chunks_without_vectors_are_told_as_ranges() -> None:
    """What has one of a model is not told for it; what goes is told for none."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", chunks=5))
            memory_segments.note_embedded(root, "a", [2, 3])
            assert list(memory_segments.missing_vectors(root, "a")) == [(1, 1), (4, 5)]
            assert list(memory_segments.missing_vectors(root, "b")) == [(1, 5)]
            memory_segments.take_out(root, [range(3, 5)])
            assert list(memory_segments.missing_vectors(root, "a")) == [(1, 1), (5, 5)]
            assert memory_segments.embedded_digests(root) == ["a"]
            memory_segments.drop_vectors(root, "a")
            assert list(memory_segments.missing_vectors(root, "a")) == [(1, 2), (5, 5)]

        await image.writer.apply(change)


def test_numbers_as_ranges() -> None:
    """In any order, also twice, also none."""
    assert list(as_ranges([5, 5, 4, 9])) == [(4, 5), (9, 9)]
    assert list(as_ranges([])) == []
