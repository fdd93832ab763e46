"""A chat to ask, and bridges that are closed behind each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import fields
from typing import Any, TypeAlias

import pytest

from batos.inference.ollama.bridge import Bridge, ChatRequest, Deadlines

#: Deadlines of a bridge whose server answers: nothing of it is late, however slow the machine is.
PATIENT = Deadlines(*[86_400.0] * len(fields(Deadlines)))

MakeBridge: TypeAlias = Callable[..., Bridge]


def chat(**changes: Any) -> ChatRequest:
    """A plain request."""
    given: dict[str, Any] = {
        "model": "robin",
        "messages": ({"role": "user", "content": "Tell me of water."},),
        "options": {"num_ctx": 512, "temperature": 0},
    }
    return ChatRequest(**{**given, **changes})


@pytest.fixture
async def bridge_to() -> AsyncIterator[MakeBridge]:
    """Bridges without haste, closed behind the test."""
    made: list[Bridge] = []

    def make(host: str, **settings: Any) -> Bridge:
        made.append(Bridge(host, **{"deadlines": PATIENT, **settings}))
        return made[-1]

    yield make
    for bridge in made:
        await bridge.aclose()
