"""A mind with grants of every class, and missions that act by them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.history.test_past_questions import Door
from tests.image.installing import install

from batos.agency.releaser import Hold, go_on
from batos.image.roots import Root
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

FACET = "tamland_facet_"
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

    async def send(self, grant: str, *arguments: Any, **fields: Any) -> dict[str, Any]:
        """A mission that is one message to a capability."""
        selector = "append_" if grant == "notes" else "post_"
        message = {"receiver": grant, "selector": selector, "arguments": list(arguments)}
        brief = {"message": message, "user": "tester", "grants": [grant], **fields}
        return dict(await self.uvm.missions.ask(brief))

    async def states(self, **of: Any) -> list[str]:
        """The states of all effects, the oldest first, once what can be released is."""
        await self.uvm.releaser.release_all()
        return [each["state"] for each in reversed((await self.ask("effects", **of))["effects"])]

    def lines(self, name: str = "log.txt") -> list[str]:
        """What stands in a file."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


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
    seams = replace(seams, effects=replace(seams.effects, hold=hold))
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
