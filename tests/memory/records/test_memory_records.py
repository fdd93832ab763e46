"""What is remembered in the image: numbers are given once, a source has one document, and what goes leaves nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.image.open_image import open_image

from batos.image import ownership, roots
from batos.image.roots import Root
from batos.memory.indexes import kinds, postings, text
from batos.memory.indexes.postings import Entry
from batos.memory.records import memory_places, memory_records, memory_segments, memory_standings
from batos.memory.records.memory_records import ChunkText, NewDocument
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound


def document(name: str, source: str = "", user: str = "ann", scope: str = "default", chunks: int = 2) -> NewDocument:
    """A document of as many chunks."""
    parts = tuple(ChunkText(10 * number, "", f"part {number} of {name}") for number in range(chunks))
    return NewDocument(
        name, user, scope, source, name, "text/plain", name, 20, "external", "2026-11-24T00:00:00Z", parts
    )


def segment_of(numbers: Iterable[int]) -> bytes:
    """Return a segment of the words of chunks, whose numbers are all that these tests look at."""
    return kinds.build_each([Entry(number, "", "lamp") for number in numbers])["text"]


def numbers_in(segment: bytes) -> list[int]:
    """Return the numbers of the chunks that a segment of words holds."""
    held: list[int] = postings.read_segment(text.KIND, segment).ids.tolist()
    return held


def add(root: Root, *documents: NewDocument) -> list[str]:
    """Add documents as the store does."""
    count = sum(each.numbers for each in documents)
    first = memory_records.reserve(root, count)
    return memory_records.add(root, documents, first, {"text": segment_of(range(first, first + count))})


def indexed_numbers(root: Root) -> list[list[int]]:
    """The numbers that each of the segments holds."""
    return [numbers_in(row.segment.data) for _, row in memory_segments.segments_of(root)]


async def test_numbers_are_given_once() -> None:
    """Chunks of a later document never have the number of an earlier one, also where that is gone."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2", chunks=3))
            assert [first for first, _ in memory_records.ranges_of(root)] == [1, 3]
            memory_records.forget(root, ["d-2"])
            add(root, document("d-3"))
            assert [first for first, _ in memory_records.ranges_of(root)] == [1, 6]
            assert not memory_records.has_chunk(root, 3)
            assert own_slots(memory_records.find_chunk(root, 7))["text"] == "part 1 of d-3"  # type: ignore[arg-type]

        await image.writer.apply(change)


async def test_a_source_has_one_document() -> None:
    """What comes from there again takes its place, for the same user and scope only."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            others = (document("d-2", "/a", "bob"), document("d-3", "/a", scope="work"), document("d-4"))
            assert add(root, document("d-1", "/a"), *others, document("d-5")) == []
            assert add(root, document("d-6", "/a")) == ["d-1"]
            assert add(root, document("d-7", "/b", chunks=3), document("d-8", "/b")) == ["d-7"]
            assert sum(map(len, indexed_numbers(root))) == memory_records.chunk_count(root)
            memory_records.forget(root, ["d-8"])
            assert set(root[roots.DOCUMENTS]) == {"d-2", "d-3", "d-4", "d-5", "d-6"}
            assert memory_places.find_by_source(root, "ann", "default", "/a") == "d-6"
            assert memory_places.find_by_content(root, "ann", "default", "d-1") is None

        await image.writer.apply(change)


async def test_what_is_forgotten_leaves_nothing() -> None:
    """Neither chunks nor names nor segments; segments of others stay as they are."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a"))
            add(root, document("d-2"), document("d-3"))
            before = memory_segments.change_of(root)
            assert memory_records.forget(root, ["d-3"]) == 2
            assert memory_segments.change_of(root) > before
            assert memory_records.forget(root, ["d-1"]) == 2
            assert indexed_numbers(root) == [[3, 4]]
            assert memory_records.forget(root, ["d-2"]) == 2
            trees = {
                name: len(root[roots.MEMORIES][name])
                for name in ("chunks", "ranges", "sources", "digests", "segments", "present")
            }
            assert (trees, len(root[roots.DOCUMENTS])) == (dict.fromkeys(trees, 0), 0)

        await image.writer.apply(change)


async def test_documents_are_named_by_id_beginning_or_source() -> None:
    """Only by their own user; what means several, or none, is said."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-AB1", "/a"), document("d-AB2", "/b"), document("d-XY1", "/a", "bob"))
            for named, name in (("d-AB2", "d-AB2"), ("d-AB1", "d-AB1"), ("/b", "d-AB2")):
                assert own_slots(memory_records.find_document(root, named, "ann"))["name"] == name
            assert own_slots(memory_records.find_document(root, "/a", "bob"))["name"] == "d-XY1"
            for named in ("d-AB", "d-XY1", "/c", "d-", ""):
                with pytest.raises(NotFound, match="document"):
                    memory_records.find_document(root, named, "ann")
            with pytest.raises(NotFound, match="several"):
                memory_records.find_document(root, "/a")
            assert own_slots(memory_records.document_at(root, 3))["name"] == "d-AB2"

        await image.writer.apply(change)


async def test_documents_and_chunks_are_their_users() -> None:
    """Another user who inspects one is told that there is none."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"))
            found = root[roots.DOCUMENTS]["d-1"]
            for each in (found, *memory_records.chunks_of(root, found)):
                assert ownership.owner(root, each) == "ann"
                with pytest.raises(NotFound):
                    ownership.check(root, each, "bob")

        await image.writer.apply(change)


async def test_a_standing_is_told_by_the_document_and_by_its_range() -> None:
    """What is superseded stays with its chunks; the search asks its range, and the change is seen."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a"), document("d-2"))
            before = memory_segments.change_of(root)
            memory_standings.set_standing(root, "d-1", "superseded")
            assert memory_segments.change_of(root) > before
            standings = {each.document: each.standing for _, each in memory_records.ranges_of(root)}
            assert standings == {"d-1": "superseded", "d-2": "current"}
            assert own_slots(memory_records.find_document(root, "d-1"))["standing"] == "superseded"
            assert memory_records.chunk_count(root) == 4

        await image.writer.apply(change)


async def test_a_document_is_found_in_whatever_scope() -> None:
    """By its source or its content; other users' scopes are passed over."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a", scope="a"), document("d-2", "/a", scope="b"), document("d-3", "/a", "bob"))
            assert sorted(memory_places.names_with_content(root, "d-2", "ann")) == ["d-2"]
            assert sorted(memory_places.names_with_content(root, "d-3", "ann")) == []
            assert sorted(memory_places.names_with_content(root, "d-3")) == ["d-3"]
            with pytest.raises(NotFound, match="several"):
                memory_records.find_document(root, "/a", "ann")
            assert own_slots(memory_records.find_document(root, "/a", "bob"))["name"] == "d-3"

        await image.writer.apply(change)


async def test_a_document_without_chunks_takes_a_number() -> None:
    """Its range stands under a number that no other document has."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", chunks=0), document("d-2"))
            assert {each.document: each.last - first + 1 for first, each in memory_records.ranges_of(root)} == {
                "d-1": 0,
                "d-2": 2,
            }
            memory_records.forget(root, ["d-1"])
            assert memory_records.chunk_count(root) == 2

        await image.writer.apply(change)


async def test_touched_documents_are_told_for_some_changes() -> None:
    """Who saw an older change than are kept is told to read all."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            seen = memory_segments.change_of(root)
            add(root, document("d-1"), document("d-2"))
            memory_standings.set_standing(root, "d-2", "edited")
            touched = [each for _, several in memory_segments.touched_since(root, seen) or () for each in several]
            assert (1, 5) in touched
            assert (3, 3) in touched
            assert memory_segments.touched_since(root, memory_segments.change_of(root)) == []
            for _ in range(memory_segments.MOST_TOUCHED):
                memory_standings.set_standing(root, "d-2", "current")
            assert memory_segments.touched_since(root, seen) is None

        await image.writer.apply(change)
