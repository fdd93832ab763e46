"""The scripted mind of tests/minds, the codex that ships, and a router over it."""

from __future__ import annotations

import pytest
from tests.minds.conftest import mind

from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.routing.lessons import lessons_of
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
