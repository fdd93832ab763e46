"""Minds whose missions run methods in real cells: sources by name, put into a persona as if they had been installed."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.image import installing
from tests.image.open_image import passed
from tests.minds.scripted import Script, change
from tests.waiting import HANG

from batos.cell.cell import Cell
from batos.cell.values import CellLimits
from batos.events import Events
from batos.image.roots import named_objects
from batos.minds.context import MindContext
from batos.objects.method import Intent, Method
from batos.objects.mirror import as_json
from batos.objects.prototype import FoundSlot, UvmObject, own_slots
from batos.protocol.errors import BatosError
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

BRICK = "brick_prototype_obj"
#: The limits of a cell whose methods are ended by what they do, and never because the machine is slow.
PATIENT = CellLimits(seconds=HANG, turn_seconds=HANG, wall_seconds=HANG)


@dataclass
class MethodMind:
    """An open UVM with a cell, the bridge that answers it, and every event so far."""

    uvm: UVM
    bridge: ScriptedBridge
    script: Script
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def told(self, event: str) -> list[dict[str, Any]]:
        """The keys of every event of that name."""
        return [keys for name, keys in self.events if name == event]

    async def learn(self, **sources: str) -> None:
        """Put methods into BRICK: `selector=source`."""
        await put(self.uvm, BRICK, **sources)

    async def install(self, **sources: str) -> None:
        """Install methods in BRICK's declared slots, each with a lineage."""

        def work(root: Any) -> None:
            for selector, source in sources.items():
                installing.install(root, root[BRICK], selector, textwrap.dedent(source))

        await change(self.uvm, work)

    async def write(self, receiver: str = BRICK, **slots: Any) -> None:
        """Give slots of an object values."""

        def work(root: Any) -> None:
            for slot, value in slots.items():
                setattr(root[receiver], slot, value)

        await change(self.uvm, work)

    def slots(self, receiver: str = BRICK) -> dict[str, Any]:
        """An object's own slots as they are committed, as a mirror shows them."""
        with self.uvm.image.snapshot() as root:
            return {slot: as_json(value) for slot, value in own_slots(named_objects(root)[receiver]).items()}

    async def send(self, selector: str, *arguments: Any, receiver: str = BRICK, **brief: Any) -> MissionDocument:
        """Send a message as a mission; the mission."""
        message = {"receiver": receiver, "selector": selector, "arguments": list(arguments)}
        files = brief.pop("files", ())
        return await self.uvm.missions.ask({"text": f"{receiver} {selector}", "message": message, **brief}, files)

    async def sent(self, selector: str, *arguments: Any, **brief: Any) -> Any:
        """What a message was answered, as data."""
        return (await self.send(selector, *arguments, **brief))["provenance"]["message"]["result"]


async def put(uvm: UVM, receiver: str, **sources: str) -> None:
    """Put methods into an object."""

    def work(root: Any) -> None:
        for selector, source in sources.items():
            setattr(root[receiver], selector, passed(selector, textwrap.dedent(source)))

    await change(uvm, work)


async def replace_runtime(uvm: UVM, **changes: Any) -> None:
    """Change what missions run methods with from now on."""
    runner = (await uvm.readiness.ready()).runner
    runner.methods = replace(runner.methods, **changes)


@asynccontextmanager
async def patient_cell(uvm: UVM) -> AsyncIterator[None]:
    """Let missions run their methods in a cell that gives them any time."""
    cell = Cell(uvm.settings.cell_workers, PATIENT, uvm.events)
    await replace_runtime(uvm, cell=cell)
    try:
        yield
    finally:
        await cell.aclose()


@asynccontextmanager
async def open_method_mind(
    home: Path, respond: Callable[[Any], Any] | None = None, bridge: ScriptedBridge | None = None, **settings: Any
) -> AsyncIterator[MethodMind]:
    """A mind whose genesis is done; nothing is made of intents, and no call is a control, unless `settings` say so."""
    script = Script()
    bridge = bridge or ScriptedBridge(respond or script)
    events: list[tuple[str, dict[str, Any]]] = []
    told = Events(lambda name, keys: events.append((name, dict(keys))), log=False)
    chosen = {"method_control": 0, **settings}
    async with scripted_uvm(home, bridge, events=told, **chosen) as uvm, patient_cell(uvm):
        yield MethodMind(uvm, bridge, script, events)


class Always:
    """A generator that has these methods, and no other: `selector=source`. It counts what it was asked for."""

    def __init__(self, **sources: str) -> None:
        self.sources = {selector: textwrap.dedent(source) for selector, source in sources.items()}
        self.asked: list[str] = []

    async def method_for(
        self, context: MindContext, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """The method of that selector, or None."""
        self.asked.append(selector)
        return Method(selector, self.sources[selector]) if selector in self.sources else None

    def recent_failure(self, holder: UvmObject, selector: str, intent: Intent) -> BatosError | None:
        """Nothing has failed."""
        return None


def methods(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a mission says ran: (selector, as)."""
    return [(each["selector"], each["as"]) for each in shown["provenance"]["methods"]]
