"""For tests of doors: a server in this process, with its note in the home, and a bridge that answers when it may."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.waiting import HANG

from batos.client import addresses
from batos.client.addresses import parse_listening
from batos.client.clients import AsyncClient
from batos.client.keys import Keyring
from batos.client.line import Patience
from batos.inference.ollama.bridge import ChatRequest
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Server
from batos.testing import ScriptedBridge, plain_reply
from batos.uvm import UVM

ANYWHERE = "tcp://127.0.0.1:*"
#: Whoever asks waits for as long as it takes.
PATIENT = Patience(connect=HANG, refused=HANG, reconnect=HANG, silence=HANG)


@asynccontextmanager
async def serving(uvm: UVM) -> AsyncIterator[Server]:
    """A server over a UVM; `client_of` finds it."""
    home = uvm.settings.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    uploads = Uploads(home / "uploads", uvm.settings.attachment_bytes)
    server = Server(Dispatcher(uvm, uploads), Keyring(home))
    async with server.serving(parse_listening(ANYWHERE, "bind"), parse_listening(ANYWHERE, "events")) as places:
        born = addresses.birth_time(os.getpid()) or ""
        left = addresses.ServerRecord(
            pid=os.getpid(),
            born=born,
            started="2026-11-21T00:00:00Z",
            bind=places.bind.near,
            events=places.events.near,
            bind_by=places.bind_by,
            events_by=places.events_by,
            batos="0",
        )
        addresses.write_record(home, left)
        try:
            yield server
        finally:
            addresses.remove_record(home, left)
            await uploads.close()


def client_of(uvm: UVM) -> AsyncClient:
    """A client of the server of a UVM's home."""
    return AsyncClient(uvm.settings.home, patience=PATIENT)


class Waiting(ScriptedBridge):
    """A bridge that answers when it may."""

    def __init__(self) -> None:
        super().__init__(plain_reply)
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def think(self, request: ChatRequest, *given: Any, **more: Any) -> Any:
        """After `may` was set."""
        self.asked.set()
        await self.may.wait()
        return await super().think(request, *given, **more)
