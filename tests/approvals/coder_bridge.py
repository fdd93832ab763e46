"""A bridge whose coder writes a good method for whatever is wanted, and what waits for a person then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.minds.scripted import Script

from batos.approvals import documents
from batos.image.ids import iso
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError
from batos.protocol.method_documents import ApprovalLine
from batos.testing import Responder, ScriptedBridge
from batos.uvm import UVM
from ollama_emulator.speech.authoring import authors, orders

BRICK, FACET = "brick_prototype_obj", "tamland_facet_"
QUESTION = "How do I build a shed?"
CYCLE = {"text": QUESTION, "persona": "BRICK", "effort": "cycle"}
MESSAGE: dict[str, Any] = {"text": "say it", "message": {"receiver": BRICK, "selector": FACET, "arguments": [QUESTION]}}


class Days:
    """A clock that stands until it is set on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 22, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, days: float) -> None:
        self.now += timedelta(days=days)


class Coding(ScriptedBridge):
    """`written` counts what its coder was asked for; all else is answered by `otherwise`."""

    def __init__(self, otherwise: Responder | None = None) -> None:
        self.written = 0
        self.otherwise = otherwise or Script()
        super().__init__(self._said)

    def _said(self, request: ChatRequest) -> str | BatosError:
        shape = orders.shape_of(request.schema)
        if shape is None:
            return self.otherwise(request)
        self.written += 1
        return authors.write("good", orders.read(shape, request.messages), {}, 0).text

    @property
    def thought(self) -> int:
        """How often it was asked for anything but a method."""
        return len(self.history) - self.written


def waiting(uvm: UVM) -> list[ApprovalLine]:
    """What waits for a person, the oldest first."""
    with uvm.image.snapshot() as root:
        return documents.list_approvals(root, iso(uvm.clock()), 99, "asked")["approvals"]


async def waits(uvm: UVM, brief: dict[str, Any], **policy: str) -> str:
    """A mission that waits for a person."""
    mission = await uvm.missions.submit({**brief, "policy": {"install": "ask", "interpret": "never", **policy}})
    await uvm.missions.begin(mission)
    found = await uvm.missions.wait_for_end(mission)
    assert found["status"] == "waiting", found.get("reason")
    return mission
