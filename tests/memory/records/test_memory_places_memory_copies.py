"""The further places of a document's content."""

from __future__ import annotations

from tests.image.open_image import open_image

from batos.image.roots import Root
from batos.memory.records import memory_places
from batos.memory.records.memory_segments import trees_of


async def test_places_are_a_documents_own() -> None:
    """Another one whose name begins alike has its own; one is dropped once. An older image has none."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            assert "copies" not in trees_of(root)
            assert memory_places.places_of(root, "d-1") == []
            assert not memory_places.drop_place(root, "d-1", "/a")
            for name, place in (("d-1", "/b"), ("d-1", "/a"), ("d-12", "/c")):
                memory_places.note_place(root, name, place)
            assert memory_places.places_of(root, "d-1") == ["/a", "/b"]
            assert memory_places.drop_place(root, "d-1", "/a")
            assert not memory_places.drop_place(root, "d-1", "/a")
            assert memory_places.places_of(root, "d-1") == ["/b"]
            assert memory_places.places_of(root, "d-12") == ["/c"]

        await image.writer.apply(change)
