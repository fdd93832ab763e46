"""What is embedded of a lesson is kept while it is being learnt: who dies is not asked for it again."""

from __future__ import annotations

from typing import Any

from batos.image import roots
from batos.image.image import LivingImage
from batos.inference.embedder import Embedder
from batos.routing.lexical import Lesson, digest_of
from batos.routing.training import BATCH, EVERY, PIECES, SavedVectors, find_or_learn
from batos.testing import ScriptedBridge

OF = ("lessons", "small:latest", "d1")
LESSONS = tuple(Lesson(name, (), tuple(f"{name} asks {each}?" for each in range(BATCH))) for name in ("ROBIN", "BRICK"))


def vectors(count: int) -> list[list[float]]:
    """So many, each another."""
    return [[float(each), 0.1, 1 / 3] for each in range(count)]


async def test_pieces_are_read_as_they_were_saved(image: LivingImage) -> None:
    """To the last bit, from the first on; what came within half a second of the last piece is in the next."""
    saved = SavedVectors(image, OF)
    for count, now in ((2, 0.0), (4, EVERY), (5, EVERY), (7, 2 * EVERY)):
        await saved.save(vectors(count), now)
    again = SavedVectors(image, OF)
    assert again.read() == vectors(7)
    await again.save(vectors(9), 0.0)
    await again.save(vectors(9), EVERY)
    assert SavedVectors(image, OF).read() == vectors(9)


async def test_what_is_of_another_space_is_nothing(image: LivingImage) -> None:
    """Another lesson, another embedder: nothing is found, and its first piece takes the place of those."""
    saved = SavedVectors(image, OF)
    await saved.save(vectors(1), 0.0)
    await saved.save(vectors(3), EVERY)
    other = SavedVectors(image, (*OF[:2], "d2"))
    assert other.read() == []
    await other.save(vectors(1), 0.0)
    await other.save(vectors(2), EVERY)
    assert (SavedVectors(image, OF).read(), SavedVectors(image, (*OF[:2], "d2")).read()) == ([], vectors(2))


async def test_a_lesson_goes_on_where_it_was(image: LivingImage) -> None:
    """Only what was not embedded is asked for, and when it is learnt the pieces are gone."""
    bridge = ScriptedBridge(vectors=lambda text: [1.0, len(text) / 10, float("ROBIN" in text)])
    embedder = Embedder(bridge, "small:latest", "d1")
    texts = [text for lesson in LESSONS for text in lesson.exemplars]
    saved = SavedVectors(image, (digest_of(LESSONS), *embedder.identity))
    await saved.save(first := await embedder.vectors(texts[:BATCH]), 0.0)
    await saved.save(first, EVERY)
    told: list[Any] = []
    made = await find_or_learn(image, LESSONS, embedder, lambda *far: told.append(far))
    assert (made.without, bridge.embedded) == (None, texts)
    with image.snapshot() as root:
        assert "meaning" in root[roots.ROUTER]
        assert PIECES not in root[roots.ROUTER]
