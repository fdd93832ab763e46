"""Places and contents of memories: whose they are, in which scope, and all that came from below a place."""

from __future__ import annotations

from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document

from batos.image.roots import Root
from batos.memory.records import memory_places


async def test_places_are_of_a_user_and_a_scope() -> None:
    """One that begins like another is another, and so is a user's whose name begins like that of another."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a#1"), document("d-2", "/a#2", scope="s"), document("d-3", "/a#1", "anna"))
            add(root, document("d-4", "/ab"))
            assert memory_places.find_by_source(root, "ann", "default", "/a#1") == "d-1"
            assert memory_places.find_by_source(root, "ann", "default", "") is None
            assert memory_places.find_by_content(root, "ann", "s", "d-2") == "d-2"
            assert memory_places.find_by_content(root, "ann", "default", "d-2") is None
            assert sorted(memory_places.names_below(root, "/a#", "ann")) == ["d-1", "d-2"]
            assert sorted(memory_places.names_below(root, "/a#")) == ["d-1", "d-2", "d-3"]
            assert sorted(memory_places.names_with_source(root, "/a#1")) == ["d-1", "d-3"]
            assert list(memory_places.names_with_content(root, "d-3", "ann")) == []

        await image.writer.apply(change)
