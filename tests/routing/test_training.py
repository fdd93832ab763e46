"""What is learnt is kept: a restart pays nothing, another codex or embedder is learnt anew, a failure leaves words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from batos.image import roots
from batos.image.image import LivingImage
from batos.inference.embedder import Embedder
from batos.protocol.errors import ModelMissing
from batos.routing.lexical import Lesson, digest_of
from batos.routing.training import NO_EMBEDDER, PROTOCOLS, LearntLessons, find_or_learn
from batos.testing import ScriptedBridge

LESSONS = (
    Lesson("ROBIN", ("lonely",), ("I feel lost today.", "Why does it hurt?")),
    Lesson("BRICK", ("debug",), ("How do I fix this loop?",), (Lesson("risk_protocol_", (), ("What can break?",)),)),
)
COUNT = sum(len(lesson.questions) for lesson in LESSONS)


def embedding(bridge: ScriptedBridge, digest: str = "d1") -> Embedder:
    """An embedder of that digest."""
    return Embedder(bridge, "small:latest", digest)


def by_length(text: str) -> list[float]:
    """A vector of a text."""
    return [1.0, len(text) / 10, float("?" in text)]


async def learn(image: LivingImage, embedder: Embedder | None, lessons: tuple[Lesson, ...] = LESSONS) -> LearntLessons:
    """Find or learn, with nobody to tell."""
    return await find_or_learn(image, lessons, embedder, lambda done, total: None)


async def test_the_second_time_nothing_is_embedded(image: LivingImage) -> None:
    """The exemplars are embedded once; what was learnt of them is found in the image and says the same."""
    bridge = ScriptedBridge(vectors=by_length)
    first = await learn(image, embedding(bridge))
    assert bridge.embedded == [text for lesson in LESSONS for text in lesson.questions]
    assert first.embedder == ("small:latest", "d1")
    again = await learn(image, embedding(bridge))
    assert len(bridge.embedded) == COUNT
    assert again.personas.words.logs("debug the loop") == first.personas.words.logs("debug the loop")
    assert first.personas.meaning is not None
    assert again.personas.meaning is not None
    assert again.personas.meaning.logs([1.0, 2.0, 0.0]) == pytest.approx(
        first.personas.meaning.logs([1.0, 2.0, 0.0]), abs=1e-4
    )


async def test_another_embedder_is_learnt_anew(image: LivingImage) -> None:
    """Vectors of another digest are of another space; other lessons are other questions."""
    bridge = ScriptedBridge(vectors=by_length)
    await learn(image, embedding(bridge))
    assert (await learn(image, embedding(bridge, "d2"))).embedder == ("small:latest", "d2")
    assert len(bridge.embedded) == 2 * COUNT
    more = (*LESSONS, Lesson("BABS", (), ("Who wrote it?",)))
    assert (await learn(image, embedding(bridge, "d2"), more)).lessons == digest_of(more)
    assert len(bridge.embedded) == 3 * COUNT + 1


async def test_without_an_embedder_what_was_learnt_stays(image: LivingImage) -> None:
    """An embedder that is away takes nothing away: its meaning is kept for its return, and it is said why."""
    bridge = ScriptedBridge(vectors=by_length)
    await learn(image, embedding(bridge))
    alone = await learn(image, None)
    assert alone.without == NO_EMBEDDER
    assert alone.personas.meaning is not None
    back = await learn(image, embedding(bridge))
    assert back.without is None
    assert len(bridge.embedded) == COUNT


@pytest.mark.parametrize("vectors", [lambda text: ModelMissing("small:latest"), lambda text: [1.0] * len(text), None])
async def test_an_embedder_that_fails_leaves_words(image: LivingImage, vectors: object) -> None:
    """A missing model, vectors of several widths, a model that cannot: words are learnt and kept, with the reason."""
    bridge = ScriptedBridge(vectors=vectors)  # type: ignore[arg-type]  # a table of such functions
    made = await learn(image, embedding(bridge))
    assert made.personas.meaning is None
    assert made.without is not None
    assert made.without.startswith("small:latest: ")
    with image.snapshot() as root:
        assert root[roots.ROUTER]["lessons"] == digest_of(LESSONS)
        assert "meaning" not in root[roots.ROUTER]


async def test_what_cannot_be_read_is_learnt_anew(image: LivingImage) -> None:
    """Bytes that are none of ours, or of another version, cost a lesson and no mission."""
    bridge = ScriptedBridge(vectors=by_length)
    ways: list[dict[str, object]] = [{"features": b"x"}, {"counts": b""}, {"meaning": b"123"}, {"format": 0}]
    for spoiled in ways:
        await learn(image, embedding(bridge))
        await image.writer.apply(partial(spoil, change=spoiled))
        made = await learn(image, embedding(bridge))
        assert made.personas.meaning is not None
        assert made.personas.words.logs("debug the loop")[1] > made.personas.words.logs("debug the loop")[0]


def spoil(root: Any, change: Mapping[str, object]) -> None:
    """What is kept becomes something else."""
    root[roots.ROUTER].update(change)


async def test_only_plain_data_is_kept(image: LivingImage) -> None:
    """The image holds bytes, texts and a number of it: nothing that a newer version could not read."""
    await learn(image, embedding(ScriptedBridge(vectors=by_length)))
    with image.snapshot() as root:
        assert {type(value) for value in root[roots.ROUTER].values()} == {bytes, str, int, dict}
        protocols = root[roots.ROUTER][PROTOCOLS]
        assert {type(value) for each in protocols.values() for value in each.values()} == {bytes}
