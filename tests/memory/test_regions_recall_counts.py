"""Counting recalls: often and when, for the summary where one stands for a memory, and never on the read itself."""

from __future__ import annotations

from tests.image.open_image import open_image
from tests.memory.records.test_memories_set_aside_memory_folding import fold
from tests.memory.records.test_memory_records import add, document

from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.memory.records.memory_segments import trees_of
from batos.memory.regions import RecallTally, count_recalls, find_last_recalls, shown_memories


async def test_recalls_are_counted_by_memory() -> None:
    """The newest moment stays; what is forgotten leaves no count."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"))
            count_recalls(root, {"d-1": 2, "d-none": 1}, "2026-11-26")
            count_recalls(root, {"d-1": 1, "d-2": 1}, "2026-11-25")
            assert find_last_recalls(root) == {1: "2026-11-26", 3: "2026-11-25"}
            assert trees_of(root)["recalls"][1] == (3, "2026-11-26")
            fold(root, "d-8", "d-1")
            fold(root, "d-9", "d-8")
            count_recalls(root, {"d-1": 1}, "2026-11-27")
            assert find_last_recalls(root)[6] == "2026-11-27"
            memory_records.forget(root, ["d-2"])
            assert 3 not in find_last_recalls(root)

        await image.writer.apply(change)


def test_a_tally_is_taken_once() -> None:
    """Each recall counts a memory once, however many of its parts it found."""
    tally = RecallTally()
    tally.note(["d-1", "d-1", "d-2"])
    tally.note(["d-1"])
    assert tally.take() == {"d-1": 2, "d-2": 1}
    assert tally.take() == {}


def test_files_of_a_mission_are_no_memories() -> None:
    """Only what it was shown of what is remembered."""
    assert list(shown_memories({"recalled": [{"memory": "d-1"}, {"sha256": "0"}, {"mission": "m-1"}]})) == ["d-1"]
    assert list(shown_memories({})) == []
