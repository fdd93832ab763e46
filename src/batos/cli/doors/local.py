"""The door without a server: the image opened in this process, behind the dispatcher that a server has too."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from batos.client.wire.pending import OnAcknowledged, OnEvent
from batos.config import Settings
from batos.events import Events
from batos.missions.late_methods import writing_seconds
from batos.protocol.brief import File
from batos.protocol.errors import ApprovalNeeded, NoServer
from batos.protocol.method_documents import LateReport
from batos.protocol.wire_messages import PIECE_BYTES
from batos.server.dispatch import erasing
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads, sweep
from batos.uvm import UVM, Seams, open_uvm
from batos.verbs.registry import read_args

#: Nobody goes on with these by themselves while no server runs.
_IDLE = frozenset({"queued", "running", "waiting", "paused"})


class LocalDoor:
    """A door over an open UVM. A mission runs here only while somebody waits for it."""

    served = False
    holder = ""

    def __init__(self, uvm: UVM, dispatcher: Dispatcher) -> None:
        self.uvm = uvm
        self._dispatcher = dispatcher
        self._begun: set[str] = set()

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> dict[str, Any]:
        """Ask one thing of the mind in this process; NoServer for what only a server can do."""
        if verb == "status":
            read_args(verb, args or {})
            raise NoServer("no server runs, so there is nothing under way")
        if verb == "wait":
            await self._check(args or {})
        return await self._dispatcher.handle(verb, args or {}, on_event or _ignore, on_acknowledged or _ignore)

    async def _check(self, args: Mapping[str, Any]) -> None:
        """Refuse to wait for what nobody is at work on."""
        found = await self._dispatcher.handle(
            "show", {name: args[name] for name in ("mission", "user") if name in args}, _ignore, _ignore
        )
        if found["status"] == "waiting" and (found.get("reason") or {}).get("code") == ApprovalNeeded.code:
            return  # that is a person's turn, and what it waits for is told at once
        if found["status"] in _IDLE and found["id"] not in self._begun:
            raise NoServer(
                f"no server runs, so no process runs {found['id']} ({found['status']})",
                remedy=f"Start one with `batos serve`, or run it here: `batos resume {found['id']}`.",
            )

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Keep the bytes of files for the brief that names them."""
        for file in files:
            for offset in range(0, len(file.data), PIECE_BYTES):
                piece = base64.b64encode(file.data[offset : offset + PIECE_BYTES]).decode()
                args = {"sha256": file.ref.sha256, "offset": offset, "data": piece}
                if "size" in await self.call("attach", args):
                    break  # it is whole, or the image has it
        return [file.ref.model_dump() for file in files]

    async def attends(self, mission: str) -> bool:
        """Say whether this process runs the mission."""
        return mission in self._begun

    async def left_behind(self) -> list[str]:
        """Settle and queue the missions that nobody runs, and return them."""
        return await self.uvm.missions.recover()

    async def begin(self, mission: str) -> None:
        """Run a queued mission in this process."""
        self._begun.add(mission)
        await self.uvm.missions.begin(mission)

    async def start_due(self, mission: str) -> str | None:
        """Begin what an answered turn made due, and return its id."""
        begun = await self.uvm.follow_ups.start_due(mission)
        if begun is not None:
            self._begun.add(begun)
        return begun

    async def learn(self, mission: str) -> LateReport:
        """Make methods within the setting `learn_seconds`, if one fits into that at the mission's pace."""
        call = writing_seconds(self.uvm.readings.mission(mission)["cost"])
        told = await self.uvm.learning.briefly(self.uvm.settings.learn_seconds, call)
        return {**told, "new": sum(each["mission"] == mission for each in self.uvm.learning.list_wishes())}

    async def keep_learning(self) -> None:
        """Begin to make methods in this process while nobody asks anything."""
        self.uvm.learning.keep()


def _ignore(*_told: Any) -> None:
    """Do nothing with an event that nobody listens to."""


@asynccontextmanager
async def open_local(settings: Settings, seams: Seams | None = None) -> AsyncIterator[LocalDoor]:
    """Open the settings' image and yield the door to it; missions that run when it is closed go back to the queue."""
    async with open_uvm(settings, Events(log=True), seams) as uvm:
        await asyncio.to_thread(sweep, settings.home)
        if uvm.image.publishing.is_here:  # another node may be at it
            await erasing.finish_one(uvm)
        # A folder of its own: a server of the same home has one too.
        uploads = Uploads(settings.home / f"uploads-{os.getpid()}", settings.attachment_bytes)
        try:
            yield LocalDoor(uvm, Dispatcher(uvm, uploads, works=False))
        finally:
            await uploads.close()
