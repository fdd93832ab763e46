"""All that a genesis leaves on the disk on its way: every state of its home and of the daemon's store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from tests.genesis.genesis_processes import image_of
from tests.genesis.stages import patient, registry_in
from tests.image.states import States
from tests.inference.conftest import PATIENT

from batos.config import Settings
from batos.events import Events
from batos.genesis.reconcile import GenesisReport
from batos.image.image import Opening
from batos.inference.ollama.bridge import Bridge
from batos.uvm import Seams, open_uvm
from ollama_emulator.emulator import Emulator, Options


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a home and with what a daemon holds."""

    folder: Path

    @property
    def home(self) -> Path:
        """The home."""
        return self.folder / "home"

    @property
    def store(self) -> Path:
        """The store of the daemon."""
        return self.folder / "store"

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[tuple[Emulator, str]]:
        """A daemon on this store, and its address."""
        emulator = Emulator(Options(registry=registry_in(self.folder), store=self.store))
        async with emulator.serving() as url:
            yield emulator, url

    async def genesis(self, url: str, seams: Seams | None = None) -> GenesisReport:
        """A genesis to its end, which must be good, and the look of a mission after it."""
        settings = Settings(home=self.home, user="tester", ollama_host=url)
        async with (
            patient(url) as bridge,
            open_uvm(settings, Events(log=False), seams or Seams(bridge=bridge)) as uvm,
        ):
            report = await uvm.readiness.genesis()
            await uvm.readiness.check()
        assert all(finding.ok for finding in report.findings), report.findings
        return report

    async def held(self, url: str) -> dict[str, Any]:
        """What home and daemon hold of a genesis: the digest of each model, the blobs, the image's records."""
        async with patient(url) as bridge:
            tags = {row.name: row.digest for row in await bridge.list()}
        blobs = {path.name for path in (self.store / "blobs").iterdir() if path.name.startswith("sha256")}
        return {"tags": tags, "blobs": blobs, "image": await image_of(self.home)}


class Recording:
    """Copies a place at every moment of a genesis at which somebody may have written."""

    def __init__(self, place: Place, into: Path) -> None:
        self.place = place
        self.states = States((place.home, place.store), into)

    @property
    def places(self) -> list[Place]:
        """The states that were found."""
        return [Place(folder) for folder in self.states.found]

    async def genesis(self, url: str) -> GenesisReport:
        """A genesis that is recorded."""
        async with Bridge(url, deadlines=PATIENT, transport=_Noting(self.states)) as bridge:
            return await self.place.genesis(url, Seams(bridge=bridge, opening=self._opening))

    def _opening(self, found: Opening) -> Opening:
        image, journal = (self.states.storage(self.place.home, name) for name in ("live_image", "journal"))
        return replace(found, image_factory=image, journal_factory=journal)


class _Noting(httpx.AsyncHTTPTransport):
    """A network that notes the state before each request, when its reply begins, and at each part of that."""

    def __init__(self, states: States) -> None:
        super().__init__()
        self.states = states

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.to_thread(self.states.note)
        reply = await super().handle_async_request(request)
        await asyncio.to_thread(self.states.note)
        reply.stream = _Parts(reply.stream, self.states)
        return reply


class _Parts(httpx.AsyncByteStream):
    def __init__(self, inner: Any, states: States) -> None:
        self.inner, self.states = inner, states

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self.inner:
            yield part
            await asyncio.to_thread(self.states.note)

    async def aclose(self) -> None:
        await self.inner.aclose()
