"""The scripted mind of tests/minds, the codex that ships, a router over it, and an image in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.minds.conftest import mind

from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.image.image import LivingImage, Opening
from batos.routing.lexical import lessons_of
from batos.routing.router import Router

__all__ = ["mind"]


@pytest.fixture(scope="module")
def codex(tmp_path_factory: pytest.TempPathFactory) -> Codex:
    """The codex that ships."""
    folder = tmp_path_factory.mktemp("codex")
    codices.install(folder)
    return codices.load(folder)


@pytest.fixture(scope="module")
def router(codex: Codex) -> Router:
    """A router over the codex that ships, by words alone."""
    return Router(lessons_of(codex.personas.values()))


@pytest.fixture
async def image() -> AsyncIterator[LivingImage]:
    """A new image in memory."""
    made = LivingImage(Opening("memory://", "memory://"))
    await made.prepare()
    yield made
    await asyncio.to_thread(made.close)
