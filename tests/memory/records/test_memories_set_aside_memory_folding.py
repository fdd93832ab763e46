"""Folding memories: all of a region or nothing, chains of summaries, and every part back as it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document, indexed_numbers, segment_of

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memories_set_aside, memory_archives, memory_records, memory_segments, memory_standings
from batos.memory.records.memories_set_aside import FoldedRegion
from batos.memory.records.memory_records import ChunkText, NewDocument
from batos.memory.records.memory_segments import NewSegment, trees_of
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound


def fold(root: Root, name: str, *names: str) -> bool:
    """Fold memories into a summary of one part, as the store does."""
    parts = {each: memories_set_aside.foldable_parts(root, each) or () for each in names}
    numbers = sorted(part.number for several in parts.values() for part in several)
    summary = NewDocument(
        name, "ann", "default", "", name, "text/plain", name, 1, "external", "2026-11-26",
        (ChunkText(0, "", f"what {name} says"),), "summary",
    )  # fmt: skip
    first = memory_records.reserve(root, 1)
    archived = [NewSegment("text", segment_of(numbers), numbers[0], numbers[-1])] if numbers else []
    region = FoldedRegion(summary, first, {"text": segment_of([first])}, parts, archived, {"reason": "cold"})
    return memories_set_aside.fold(root, region)


def state_of(root: Root) -> dict[str, object]:
    """All that is remembered, but for numbers of segments and changes."""
    return {
        "documents": {name: dict(own_slots(each)) for name, each in root[roots.DOCUMENTS].items()},
        "chunks": {
            number: {**own_slots(each), "document": own_slots(own_slots(each)["document"])["name"]}
            for number, each in trees_of(root)["chunks"].items()
        },
        "ranges": list(memory_records.ranges_of(root)),
        "present": list(memory_segments.present_ranges(root)),
        "indexed": sorted(number for numbers in indexed_numbers(root) for number in numbers),
        "named": [dict(trees_of(root)[tree]) for tree in ("sources", "digests")],
        "apart": [dict(trees_of(root)[tree]) for tree in ("archives", "folded", "stale")],
    }


async def test_a_region_is_folded_whole_or_not_at_all() -> None:
    """One that is gone, is no longer current, is pinned, is a fact, or has marks in a part keeps all of it as it is."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"), document("d-3"), document("d-4"))
            memory_standings.set_standing(root, "d-1", "superseded")
            root[roots.DOCUMENTS]["d-2"].kind = "fact"
            trees_of(root)["pins"] = OOBTree({"ann\0default\0d-3": "2026-11-26"})
            next(iter(memory_records.chunks_of(root, root[roots.DOCUMENTS]["d-4"]))).marks = (
                (0, 4, "superseded", "", "d-2", ""),
            )
            for number in range(1, 6):
                assert memories_set_aside.foldable_parts(root, f"d-{number}") is None
                before = state_of(root)
                assert not fold(root, "d-9", f"d-{number}")
                assert state_of(root) == before

        await image.writer.apply(change)


@given(st.lists(st.lists(st.text(max_size=9), min_size=1, max_size=4), min_size=1, max_size=5), st.data())
async def test_what_is_unfolded_is_as_it_was(texts: Sequence[Sequence[str]], data: st.DataObject) -> None:
    """Each part byte for byte under its old number, in any order of folding, with summaries of summaries between."""
    documents = [
        NewDocument(
            f"d-{number}", "ann", "default", f"/{number}", "t", "text/plain", str(number), 1, "user", "2026-11-25",
            tuple(ChunkText(place, "h", text) for place, text in enumerate(parts)),
        )
        for number, parts in enumerate(texts)
    ]  # fmt: skip
    chosen = data.draw(st.lists(st.sampled_from([each.name for each in documents]), min_size=1, unique=True))
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, *documents)
            before = state_of(root)
            assert fold(root, "d-s", *chosen)
            assert fold(root, "d-t", "d-s")
            assert memories_set_aside.list_below(root, "d-t") == ["d-s", *chosen]
            assert memories_set_aside.list_above(root, chosen) == ["d-s", "d-t"]
            assert memories_set_aside.unfold(root, ["d-s"]) == chosen
            assert state_of(root) == before

        await image.writer.apply(change)


async def test_what_a_summary_stands_for_is_found_and_brought_back() -> None:
    """By the summary's name; another memory's name tells its summary. What is covered comes back before it goes."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-11", "/a"), document("d-12"), document("d-13"))
            fold(root, "d-21", "d-11", "d-12")
            assert memories_set_aside.find_summary(root, "d-21", "ann") == "d-21"
            with pytest.raises(NotFound, match="no summary") as told:
                memories_set_aside.find_summary(root, "d-11", "ann")
            assert "d-21" in (told.value.remedy or "")
            with pytest.raises(NotFound, match="no document"):
                memories_set_aside.find_summary(root, "d-21", "bob")
            memories_set_aside.unfold_covering(root, ["d-12", "d-13", "d-none"])
            assert set(root[roots.DOCUMENTS]) == {"d-11", "d-12", "d-13"}
            fold(root, "d-22", "d-11", "d-12")
            fold(root, "d-23", "d-22", "d-13")
            memories_set_aside.unfold_all(root, ["d-23", "d-22", "d-11"])
            assert set(root[roots.DOCUMENTS]) == {"d-11", "d-12", "d-13"}
            assert not memory_archives.is_summary(root, "d-22")

        await image.writer.apply(change)
