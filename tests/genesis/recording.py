"""All that a genesis leaves on the disk on its way: every state of its home and of the daemon's store."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from tests.genesis.killing import image_of
from tests.genesis.stages import registry_in

from batos.config import Settings
from batos.events import Events
from batos.genesis.reconcile import GenesisReport
from batos.image.filestorage import SoundFileStorage
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
        async with open_uvm(settings, Events(log=False), seams) as uvm:
            report = await uvm.genesis()
            await uvm.check()
        assert all(finding.ok for finding in report.findings), report.findings
        return report

    async def held(self, url: str) -> dict[str, Any]:
        """What home and daemon hold of a genesis: the digest of each model, the blobs, the image's records."""
        async with Bridge(url) as bridge:
            tags = {row.name: row.digest for row in await bridge.list()}
        blobs = {path.name for path in (self.store / "blobs").iterdir() if path.name.startswith("sha256")}
        return {"tags": tags, "blobs": blobs, "image": await image_of(self.home)}

    def files(self) -> Iterator[Path]:
        """Every file of both."""
        return (path for top in (self.home, self.store) for path in top.rglob("*") if path.is_file())


@dataclass(slots=True)
class Recording:
    """Copies a place at every moment at which somebody may have written, unless all is there already as it is."""

    place: Place
    into: Path
    states: list[Place] = field(default_factory=list)
    _seen: set[frozenset[tuple[str, int, int]]] = field(default_factory=set)

    def note(self, torn: tuple[Path, int] | None = None) -> None:
        """Keep what a process that is killed now would leave: what it has buffered itself is not among it.

        `torn` names a file that is kept with so many bytes only, for a write that was under way.
        """
        stats = [(str(path), path.stat()) for path in self.place.files()]
        state = frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
        if torn is None and state in self._seen:
            return
        self.states.append(Place(self.into / str(len(self.states))))
        for top in (self.place.home, self.place.store):
            shutil.copytree(top, self.states[-1].folder / top.name)
        if torn is None:
            self._seen.add(state)
        else:
            path, size = torn
            os.truncate(self.states[-1].home / path.name, size)

    async def genesis(self, url: str) -> GenesisReport:
        """A genesis that is recorded."""
        async with Bridge(url, transport=_Noting(self)) as bridge:
            return await self.place.genesis(url, Seams(bridge=bridge, opening=self._opening))

    def _opening(self, found: Opening) -> Opening:
        recording, home = self, self.place.home

        class Storage(SoundFileStorage):
            def tpc_vote(self, transaction: Any) -> Any:
                recording.note()
                voted = super().tpc_vote(transaction)
                self._file.flush()
                path = Path(self._file_name)
                recording.note((path, (self._pos + path.stat().st_size) // 2))
                recording.note()
                return voted

            def _finish(self, tid: bytes, *also: Any) -> None:
                super()._finish(tid, *also)
                recording.note()

        def synced(descriptor: int) -> None:
            recording.note()

        def factory(name: str) -> Any:
            return lambda: Storage(str(home / f"{name}.fs"), blob_dir=str(home / "blobs"), sync=synced)

        return replace(found, image_factory=factory("live_image"), journal_factory=factory("journal"))


class _Noting(httpx.AsyncHTTPTransport):
    """A network that notes the state before each request, when its reply begins, and at each part of that."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.to_thread(self.recording.note)
        reply = await super().handle_async_request(request)
        await asyncio.to_thread(self.recording.note)
        reply.stream = _Parts(reply.stream, self.recording)
        return reply


class _Parts(httpx.AsyncByteStream):
    def __init__(self, inner: Any, recording: Recording) -> None:
        self.inner, self.recording = inner, recording

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self.inner:
            yield part
            await asyncio.to_thread(self.recording.note)

    async def aclose(self) -> None:
        await self.inner.aclose()
