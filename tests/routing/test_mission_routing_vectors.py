"""Vectors of sentences: read from the journal, else embedded in one request, whose failure ends the asking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from tests.inference.counting_bridge import Desk, desk

from batos.genesis.codex.codex import Codex
from batos.image.ids import utc_now
from batos.inference.cost import cost_of
from batos.inference.embedder import Embedder, KnownVectors
from batos.protocol.errors import BatosError, OllamaTimeout
from batos.routing.lexical import lessons_of
from batos.routing.mission_routing import MOST_TEXTS, MissionVectors
from batos.routing.question_vectors import JournaledVectors
from batos.routing.router import Router
from batos.testing import ScriptedBridge

PATH = "brick/judging#0"
TEXTS = ("The lamp burns.", "Whales sing.", "The lamp burns.")


def by_length(text: str) -> list[float]:
    """A vector of a text."""
    return [1.0, float(len(text))]


@dataclass
class Embedding:
    """A desk with a journal, a bridge that embeds, and a router that has it for an embedder."""

    at: Desk
    router: Router
    bridge: ScriptedBridge
    paid: list[int] = field(default_factory=list)

    def of(self, mission: str = "m-1") -> MissionVectors:
        """The vectors of a mission."""
        journaled = JournaledVectors(self.at.journal, [mission], utc_now)
        return MissionVectors(self.router, journaled, lambda: self.paid.append(1))

    def answering(self, vectors: Callable[[str], list[float] | BatosError]) -> None:
        """Let the embedder answer so from now on."""
        self.bridge.vectors = vectors


@pytest.fixture
async def embedding(codex: Codex, router: Router) -> AsyncIterator[Embedding]:
    """An embedder whose vectors have the length of a text."""
    mine = Router(lessons_of(codex.personas.values()), router.learnt)
    bridge = ScriptedBridge(vectors=by_length)
    mine._embedder = Embedder(bridge, "minilm", "d" * 64)
    async with desk() as at:
        yield Embedding(at, mine, bridge)


async def test_a_mission_pays_once_and_finds_the_same_later(embedding: Embedding) -> None:
    """One request, one entry of the journal; a later attempt reads it, whatever became of the embedder."""
    found = await embedding.of().vectors(TEXTS, PATH)
    assert found == [by_length(text) for text in TEXTS]
    assert embedding.bridge.embedded == list(TEXTS[:2])
    embedding.answering(lambda text: OllamaTimeout("reply", 10))
    assert await embedding.of().vectors(TEXTS, PATH) == found
    assert len(embedding.paid) == 1
    assert cost_of(embedding.at.records()).embeds == 1


async def test_another_mission_embeds_only_what_is_new(embedding: Embedding) -> None:
    """Vectors are kept by the text, so that a file's sentences are embedded once in a process."""
    await embedding.of().vectors(TEXTS, PATH)
    assert await embedding.of("m-2").vectors(("Whales sing.", "It rains."), PATH) is not None
    assert embedding.bridge.embedded == [*TEXTS[:2], "It rains."]
    assert await embedding.of("m-3").vectors(("Whales sing.",), PATH) == [by_length("Whales sing.")]
    assert len(embedding.paid) == 2


async def test_an_embedder_that_fails_is_left_alone(embedding: Embedding) -> None:
    """The mission asks it no more, and neither does any other for a while."""
    embedding.answering(lambda text: OllamaTimeout("reply", 10))
    mine = embedding.of()
    assert await mine.vectors(TEXTS, PATH) is None
    embedding.answering(by_length)
    assert await mine.vectors(TEXTS, PATH) is None
    assert await embedding.of("m-2").vectors(TEXTS, PATH) is None
    assert not embedding.router.may_embed


async def test_nothing_is_embedded_without_an_embedder_or_beyond_the_bound(embedding: Embedding) -> None:
    """Words alone decide then."""
    assert await embedding.of().vectors([str(number) for number in range(MOST_TEXTS + 1)], PATH) is None
    assert await embedding.of().vectors((), PATH) is None
    embedding.router._embedder = None
    assert await embedding.of().vectors(TEXTS, PATH) is None
    assert embedding.bridge.embedded == []


def test_the_vectors_that_are_kept_are_bounded() -> None:
    """The ones used longest ago go first."""
    known = KnownVectors(2)
    for text in ("a", "b"):
        known.keep("d", text, [1.0])
    assert known.find("d", "a") == [1.0]
    known.keep("d", "c", [2.0])
    assert known.find("d", "b") is None
    assert (known.find("d", "a"), known.find("e", "a")) == ([1.0], None)
