"""Pins: by user and scope, the oldest first, and gone with what was pinned."""

from __future__ import annotations

from functools import partial

from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.records import memory_standings


async def test_pins_are_of_a_user_and_a_scope() -> None:
    """Nobody else's are among them; to pin or unpin twice changes nothing."""
    async with open_image(None) as image:
        store = store_of(image)
        given = [incoming("Red."), incoming("Blue.", scope="work"), incoming("Green.", user="bob")]
        red, blue, green = [each["document"] for each in (await store.remember(given))["remembered"]]
        for name in (red, blue, green):
            assert await image.writer.apply(partial(memory_standings.pin, name=name, at="now"))
        assert not await image.writer.apply(lambda root: memory_standings.pin(root, red, "later"))
        with image.snapshot() as root:
            assert list(memory_standings.list_pinned(root, "ann", ["default"])) == [red]
            assert list(memory_standings.list_pinned(root, "ann", ["work", "default"])) == [red, blue]
            assert list(memory_standings.list_pinned(root, "an", ["default"])) == []
            assert sorted(memory_standings.list_pinned(root, "ann")) == sorted([red, blue])
            assert memory_standings.is_pinned(root, green)
        assert await image.writer.apply(lambda root: memory_standings.unpin(root, red))
        assert not await image.writer.apply(lambda root: memory_standings.unpin(root, red))


async def test_a_pin_goes_with_its_memory() -> None:
    """What is forgotten is pinned no more."""
    async with open_image(None) as image:
        store = store_of(image)
        (line,) = (await store.remember([incoming("Red.")]))["remembered"]
        await image.writer.apply(lambda root: memory_standings.pin(root, line["document"], "now"))
        await store.forget([line["document"]])
        with image.snapshot() as root:
            assert list(memory_standings.list_pinned(root, "ann")) == []
