"""A mind that learns: a real guardian and real cells, a coder that is a function, missions that need its methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.methods.execution.method_mind import patient_cell

from batos.events import Events
from batos.inference.ollama.bridge import ChatRequest
from batos.methods.generation.generator import MethodGenerator
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError
from batos.testing import ScriptedBridge, author, method_reply, plain_reply, scripted_uvm, wanted_selector
from batos.uvm import UVM

FACETS = ("tamland_facet_", "guide_facet_", "rogues_gallery_facet_")
SPEAKS = "async def SELECTOR(self, query):\n    return await self.infer_(f'{self.name}: {query}')\n"
SAID = tuple({"arguments": [each], "replies": {"infer_": ["So."]}, "result": "So."} for each in ("why?", "how?"))
CYCLE = {"text": "Why is the pier made of granite?", "persona": "BRICK", "effort": "cycle"}
MESSAGE = {
    "text": "guide",
    "message": {"receiver": "brick_prototype_obj", "selector": "guide_facet_", "arguments": ["Why is the sky blue?"]},
}
NEVER = {"policy": {"interpret": "never"}}


@dataclass
class Clock:
    """A clock that goes on by itself, from wherever it is put."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Learning:
    """A mind that learns, with what its coder was asked and what it told."""

    uvm: UVM
    bridge: ScriptedBridge
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def generator(self) -> MethodGenerator:
        """Who makes methods."""
        return self.uvm.method_runtime.generator

    @property
    def coded(self) -> list[str]:
        """The selector of every request that the coder got, in order."""
        return [selector for selector in map(wanted_selector, self.bridge.history) if selector]

    def names(self, event: str) -> list[Mapping[str, Any]]:
        """The keys of each event of that name, in order."""
        return [keys for name, keys in self.told if name == event]

    def slot(self, selector: str) -> Any:
        """The class of what BRICK's slot holds now: Method or Intent."""
        with self.uvm.image.snapshot() as root:
            return type(own_slots(root["brick_prototype_obj"])[selector])


@asynccontextmanager
async def learning(
    home: Path, respond: Callable[[ChatRequest], str | BatosError] | ScriptedBridge | None = None, **settings: Any
) -> AsyncIterator[Learning]:
    """A mind whose coder writes facets that think, unless `respond` says otherwise."""
    bridge = respond if isinstance(respond, ScriptedBridge) else ScriptedBridge(respond or author(SPEAKS, SAID))
    told: list[tuple[str, Mapping[str, Any]]] = []
    events = Events(lambda name, keys: told.append((name, keys)))
    chosen = {"install": "now", "method_control": 0, **settings}
    async with scripted_uvm(home, bridge, events=events, **chosen) as uvm, patient_cell(uvm):
        yield Learning(uvm, bridge, told)


class Refusing:
    """A coder whose every reply is wrong; it counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: ChatRequest) -> str | BatosError:
        if not wanted_selector(request):
            return plain_reply(request)
        self.count += 1
        return method_reply("def wrong_(self):\n    return 1\n", SAID)
