"""The archives of memories: any text comes back as it was, damage is told, and stale segments are known."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document, indexed_numbers, numbers_in, segment_of

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_archives, memory_records, memory_segments, memory_standings
from batos.memory.records.memory_archives import ArchivedPart
from batos.memory.records.memory_segments import NewSegment
from batos.objects.prototype import own_slots
from batos.protocol.errors import IndexDamaged

TEXT = st.text(st.characters(), max_size=40)
MARKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), TEXT, TEXT), max_size=2).map(tuple)
PART = st.builds(ArchivedPart, st.integers(1, 2**40), st.integers(0, 2**40), TEXT, TEXT, MARKS)


@given(st.dictionaries(TEXT, st.lists(PART, max_size=4), max_size=4))
def test_any_text_comes_back_as_it_was(parts: dict[str, list[ArchivedPart]]) -> None:
    """Also half letters, which no UTF-8 has."""
    assert memory_archives.unpack(memory_archives.pack(parts)) == parts


@pytest.mark.parametrize("data", [b"", b"no archive", zlib.compress(b"[]"), zlib.compress(b'{"d": [[1]]}')])
def test_damage_is_told(data: bytes) -> None:
    """Never by an error of a library."""
    with pytest.raises(IndexDamaged):
        memory_archives.unpack(data)


def archive(root: Root, name: str, *documents: str) -> None:
    """Move the parts of documents into the archive of a summary; their segment is the numbers."""
    parts, numbers = {}, []
    for each in documents:
        found = [own_slots(chunk) for chunk in memory_records.chunks_of(root, root[roots.DOCUMENTS][each])]
        parts[each] = [ArchivedPart(one["number"], one["start"], one["heading"], one["text"]) for one in found]
        numbers += [one["number"] for one in found]
    segment = NewSegment("text", segment_of(numbers), numbers[0], numbers[-1])
    memory_archives.put_away(root, name, parts, [segment])


async def test_archived_parts_are_read_and_come_back() -> None:
    """By number and by document; they are no part of what is there, and their words stand in segments for a while."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a"), document("d-2"), document("d-3"))
            archive(root, "d-9", "d-1", "d-3")
            assert list(memory_segments.present_ranges(root)) == [(3, 4)]
            assert [first for first, _ in memory_records.ranges_of(root)] == [3]
            assert [(first, name) for first, name, _ in memory_archives.rows(root)] == [(1, "d-9"), (5, "d-9")]
            assert memory_archives.is_summary(root, "d-9")
            for number in (1, 2, 5, 6):
                found = memory_records.find_chunk(root, number)
                assert found is not None
                assert found.text == f"part {(number - 1) % 2} of d-{1 + (number > 2) * 2}"
            assert memory_archives.find_part(root, 4) is memory_archives.find_part(root, 7) is None
            assert [each.number for each in memory_records.chunks_of(root, root[roots.DOCUMENTS]["d-3"])] == [5, 6]
            assert (memory_archives.stale_numbers(root), memory_archives.holding_stale(root)) == ([(1, 2), (5, 6)], [1])
            assert [(name, numbers_in(data)) for name, data in memory_archives.text_segments(root)] == [
                ("d-9", [1, 2, 5, 6])
            ]
            memory_standings.set_standing(root, "d-3", "retracted")
            assert memory_archives.bring_back(root, ["d-9"]) == ["d-1", "d-3"]
            standings = {row.document: row.standing for _, row in memory_records.ranges_of(root)}
            assert standings == {"d-1": "current", "d-2": "current", "d-3": "retracted"}
            assert list(memory_segments.present_ranges(root)) == [(1, 6)]
            assert sorted(indexed_numbers(root)) == [[1, 2, 5, 6], [3, 4]]
            assert memory_archives.stale_numbers(root) == []
            assert not memory_archives.is_summary(root, "d-9")

        await image.writer.apply(change)


async def test_a_standing_of_what_is_archived_is_kept() -> None:
    """Current again means summarised, as long as a summary stands for it."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"))
            archive(root, "d-9", "d-1")
            for asked, told in (("superseded", "superseded"), ("current", "summarised")):
                memory_standings.set_standing(root, "d-1", asked)  # type: ignore[arg-type]
                assert root[roots.DOCUMENTS]["d-1"].standing == told
                assert [row[5] for _, _, row in memory_archives.rows(root)] == [told]

        await image.writer.apply(change)


async def test_segments_are_written_anew_and_stale_numbers_are_forgotten() -> None:
    """A segment that is gone meanwhile, or another one under its number, is left."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"))
            archive(root, "d-9", "d-1")
            (number, row), *_ = memory_segments.segments_of(root)
            root._p_jar.add(row.segment)  # type: ignore[attr-defined]
            assert memory_archives.rewrite_segment(root, number, row.segment, bytes((3, 4)))
            assert not memory_archives.rewrite_segment(root, number, row.segment, bytes((3, 4)))
            memory_archives.forget_stale(root, [(1, 2)])
            assert memory_archives.holding_stale(root) == []

        await image.writer.apply(change)
