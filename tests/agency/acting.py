"""A mind with grants of every class, and missions that act by them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.history.test_as_of_past_questions import Door
from tests.image.installing import install
from tests.waiting import HANG

from batos.agency.granting import open_sink, refuse_places
from batos.agency.http_sink import HttpSink
from batos.agency.releaser import Hold, Point, go_on
from batos.agency.sinks import Sink, SinkFactory
from batos.config import Settings
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

FACET = "tamland_facet_"
#: Seconds of a lease that no test outlives: a node that is held up stays one.
LASTING = 600.0
#: A method that asks the model, and writes the answer down by a capability.
WRITES = (
    f"async def {FACET}(self, query):\n"
    "    notes = await self.capability_('notes')\n"
    "    said = await notes.append_('log.txt', 'Asked: ' + query)\n"
    "    return said + ' ' + await self.infer_(query)\n"
)
BRIEF = {"text": "What holds a pier?", "persona": "BRICK", "effort": "cycle", "user": "tester", "grants": ["notes"]}


@dataclass
class Acting:
    """A mind that acts: `ask` is a door to it, `folder` what it may append to."""

    uvm: UVM
    ask: Door
    folder: Path

    async def send(
        self, grant: str, *arguments: Any, selector: str = "", yes: bool = True, **fields: Any
    ) -> dict[str, Any]:
        """A mission that is one message to a capability; a person says yes to what asks, unless told not to."""
        selector = selector or ("append_" if grant == "notes" else "post_")
        message = {"receiver": grant, "selector": selector, "arguments": list(arguments)}
        brief = {"message": message, "user": "tester", "grants": [grant], **fields}
        sent = dict(await self.uvm.missions.ask(brief))
        if yes and (asked := await self.asked()):
            await self.ask("approve", approvals=asked)
        return sent

    async def asked(self) -> list[str]:
        """The questions about effects that wait for a person, the oldest first."""
        waiting = (await self.ask("approvals", status="asked"))["approvals"]
        return [each["id"] for each in sorted(waiting, key=lambda each: str(each["id"]))]

    async def states(self, **of: Any) -> list[str]:
        """The states of all effects, the oldest first, once what can be released is."""
        await self.uvm.releaser.release_all()
        return [each["state"] for each in reversed((await self.ask("effects", **of))["effects"])]

    def lines(self, name: str = "log.txt") -> list[str]:
        """What stands in a file."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


def patient(usual: SinkFactory = open_sink) -> SinkFactory:
    """Sinks as the usual ones, but that a program may take as long as it likes to answer."""

    def sinks(capability: UvmObject) -> Sink:
        slots = own_slots(capability)
        if slots["kind"] == "http":
            return HttpSink(slots["target"], slots["sink"], HANG)
        return usual(capability)

    return sinks


def by_hand(hold: Hold = go_on) -> Hold:
    """A hold by which effects are tried in this task alone, as by `states`: no pause says how often one was tried."""
    here = asyncio.current_task()

    async def held(point: Point, effect: str) -> None:
        if point == "staged" and asyncio.current_task() is not here:
            raise RuntimeError("the test tries it")
        await hold(point, effect)

    return held


@asynccontextmanager
async def acting(
    place: Path,
    *,
    url: str = "",
    hold: Hold = go_on,
    bridge: ScriptedBridge | None = None,
    memory: bool = True,
    seams: Seams | None = None,
    **settings: Any,
) -> AsyncIterator[Acting]:
    """A mind with the grant `notes` for a folder, and for an address `inbox` (keyed) and `dark` (blind)."""
    home, folder = place / "home", place / "folder"
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    seams = seams or Seams()
    own = Settings(home=home, **{name: settings[name] for name in ("image", "journal") if name in settings})
    sinks = seams.effects.sinks or patient(partial(open_sink, guard=partial(refuse_places, own)))
    seams = replace(seams, effects=replace(seams.effects, hold=hold, sinks=sinks))
    async with scripted_uvm(home, bridge, memory=memory, seams=seams, method_control=0, **settings) as uvm:
        ask = Door(uvm)
        if not (await ask("grants"))["grants"]:
            await ask("grants_add", kind="file", target=str(folder), name="notes", user="tester")
            for name in ("inbox", "dark") if url else ():
                given = {"kind": "http", "target": url, "name": name, "blind": name == "dark"}
                await ask("grants_add", **given, user="tester")

            def learn(root: Root) -> None:
                install(root, root["brick_prototype_obj"], FACET, WRITES)

            await uvm.image.writer.apply(learn)
        yield Acting(uvm, ask, folder)
