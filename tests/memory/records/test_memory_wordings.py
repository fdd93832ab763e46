"""Wordings of a memory: edits lead from one to the next, and what is history of one goes with it."""

from __future__ import annotations

from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_standings, memory_wordings
from batos.records.memory_lineage import EDITS


def edit(root: Root, before: str, after: str, source: str = "") -> None:
    """Write another wording, as the store does."""
    memory_standings.set_standing(root, before, "edited")
    add(root, document(after, source))
    setattr(root[roots.DOCUMENTS][after], EDITS, (before,))


async def test_wordings_are_found_by_their_edits() -> None:
    """In both directions, and no other text of the same user."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-0"))
            edit(root, "d-1", "d-2")
            edit(root, "d-2", "d-3")
            for name in ("d-1", "d-2", "d-3"):
                assert memory_wordings.wordings_of(root, name) == ["d-1", "d-2", "d-3"]
            assert memory_wordings.is_same_memory(root, "d-1", "d-3")
            assert not memory_wordings.is_same_memory(root, "d-1", "d-0")

        await image.writer.apply(change)


async def test_history_goes_with_a_memory() -> None:
    """All edited texts of it and of its source; of an edited text only those before it."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a"), document("d-9", "/b"), document("d-8", "/a", "bob"))
            edit(root, "d-1", "d-2", "/a")
            edit(root, "d-2", "d-3", "/a")
            memory_standings.set_standing(root, "d-9", "edited")
            memory_standings.set_standing(root, "d-8", "edited")
            assert memory_wordings.history_of(root, ["d-3"]) == ["d-1", "d-2"]
            assert memory_wordings.history_of(root, ["d-2"]) == ["d-1"]
            add(root, document("d-4", "/a"))  # the file has changed
            assert memory_wordings.history_of(root, ["d-4"]) == ["d-1", "d-2"]
            assert memory_wordings.history_of(root, ["d-8"]) == []

        await image.writer.apply(change)
