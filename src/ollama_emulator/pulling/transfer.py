"""Download real layers in parts, shared by all pulls that want them and resumed after a break."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from ollama_emulator.clocks import Clock
from ollama_emulator.library.store import Layer, Store, digest_in
from ollama_emulator.pulling import remote
from ollama_emulator.pulling.fetching import Broken, Stalled, fetch, near
from ollama_emulator.pulling.registry import Registry
from ollama_emulator.pulling.remote import REDIRECTS, RemoteModel

TICK_S = 0.06
_PARTS = 16
_SMALLEST_PART, _LARGEST_PART = 100 * 10**6, 1000 * 10**6
_TRIES = 6
_STALLED_S = 30.0
_DIRECT_S = 30.0  # time to find the address that redirects lead to


@dataclass(slots=True)
class LayerPart:
    """A range of a layer that is downloaded separately, in bytes; `done` of its bytes are stored."""

    number: int
    offset: int
    size: int
    done: int = 0


@dataclass(slots=True)
class Download:
    """The download of one layer for all pulls that wait for it; it stops without a waiter and can be resumed."""

    source: RemoteModel
    layer: Layer
    store: Store
    registry: Registry
    clock: Clock
    parts: list[LayerPart] = field(default_factory=list)
    waiting: int = 0
    task: asyncio.Task[None] | None = None
    stopping: bool = False

    @property
    def total(self) -> int:
        """Return the size of the layer in bytes, 0 until it is known."""
        return sum(part.size for part in self.parts)

    @property
    def stored_bytes(self) -> int:
        """Return the number of bytes that are stored."""
        return sum(part.done for part in self.parts)

    @property
    def url(self) -> str:
        """Return the address of the layer."""
        return self.source.url("blobs", self.layer.digest)

    async def prepare(self) -> None:
        """Divide the layer into parts, or take those of an earlier download.

        Raises: Broken: the layer cannot be had.
        """
        self._resume()
        if self.parts:
            return
        length = (await remote.ask("HEAD", self.url)).length
        if length > self.source.most:
            raise Broken(f"a layer of {length} bytes is refused: this emulator takes up to {self.source.most}")
        size = max(_SMALLEST_PART, min(length // _PARTS, _LARGEST_PART))
        self.parts = [
            LayerPart(number, offset, min(size, length - offset))
            for number, offset in enumerate(range(0, length, size))
        ]
        for part in self.parts:
            self._keep(part)

    def _resume(self) -> None:
        """Read the parts of an earlier download from the store."""
        path = self.store.partial(self.layer.digest)
        for kept in sorted(path.parent.glob(f"{path.name}-*")):
            found = json.loads(kept.read_text("utf-8"))
            part = LayerPart(found["N"], found["Offset"], found["Size"], found["Completed"] if path.exists() else 0)
            self.parts.append(part)

    def _keep(self, part: LayerPart) -> None:
        """Store the progress of a part in the daemon's form."""
        kept = {"N": part.number, "Offset": part.offset, "Size": part.size, "Completed": part.done}
        self.store.partial(self.layer.digest, part.number).write_text(json.dumps(kept) + "\n", "utf-8")

    async def run(self) -> None:
        """Download all missing bytes and store the layer as a blob. Raises: Broken: the transfer fails."""
        path = self.store.partial(self.layer.digest)
        path.touch()
        with path.open("r+b") as target:
            target.truncate(self.total)
            direct = await self._redirected_url()
            limit = asyncio.Semaphore(_PARTS)
            async with asyncio.TaskGroup() as group:
                for part in self.parts:
                    if part.done < part.size:
                        group.create_task(self._part(direct, part, target, limit))
        for part in self.parts:
            self.store.partial(self.layer.digest, part.number).unlink(missing_ok=True)
        self.store.adopt(self.layer.digest, path, self.total)

    async def _redirected_url(self) -> str:
        """Return the address that serves the layer, after redirects. Tries are repeated for `_DIRECT_S` seconds."""
        url, waited, tries = self.url, 0.0, 0
        while True:
            try:
                return await _last_of_host(url)
            except Broken as fault:
                if not fault.again:
                    raise
                tries += 1
                pause = min(tries * tries * 0.01, 10.0)
                waited += pause
                if waited > _DIRECT_S:
                    raise Broken("context deadline exceeded") from None
                await self.clock.sleep(pause)

    async def _part(self, url: str, part: LayerPart, target: IO[bytes], limit: asyncio.Semaphore) -> None:
        """Download a part, in up to `_TRIES` tries; a stalled one does not count. Raises: Broken: all failed."""
        fault = Broken("EOF")
        tries = 0
        async with limit:
            while tries < _TRIES:
                try:
                    await self._fetch(url, part, target)
                except Stalled:
                    continue  # a stall does not count as a try
                except Broken as broken:
                    fault = broken
                    await self.clock.sleep(2.0**tries)
                    tries += 1
                else:
                    return
        raise Broken(f"max retries exceeded: {fault}")

    async def _fetch(self, url: str, part: LayerPart, target: IO[bytes]) -> None:
        """Download the missing bytes of a part; bytes that arrived stay stored even if it fails."""
        wanted = {"Range": f"bytes={part.offset + part.done}-{part.offset + part.size - 1}"}
        try:
            async with fetch("GET", url, wanted, _STALLED_S) as reply:
                async for piece in reply.pieces():
                    data = piece[: part.size - part.done]
                    target.seek(part.offset + part.done)
                    target.write(data)
                    part.done += len(data)
                    self.registry.pulled[self.layer.digest] += len(data)
        finally:
            target.flush()
            self._keep(part)
        if part.done < part.size:
            raise Broken("EOF")


async def _last_of_host(url: str) -> str:
    """Follow redirects within a host; return the last address, or the first one on another host."""
    host = urlsplit(url).hostname
    for _ in range(REDIRECTS + 1):
        told = await remote.once("GET", url, read=False)
        if told.location and urlsplit(told.location).hostname != host:
            return _local_url(told.location)
        if not told.location:
            if told.status == 200:
                return url
            raise Broken(f"unexpected status code {told.status}", again=told.status >= 400)
        url = told.location
    raise Broken("maximum redirects exceeded (10) for directURL")


def _local_url(url: str) -> str:
    """Return the URL if its host is this machine. Raises: Broken: the emulator asks no other host."""
    host = urlsplit(url).hostname
    if not near(host or ""):
        raise Broken(f'Get "{url}": dial tcp: lookup {host} on 127.0.0.53:53: no such host')
    return url


async def layer(download: Download) -> AsyncIterator[tuple[int, int]]:
    """Download a layer, or join a running download of it; yield its size and the stored bytes every `TICK_S` seconds.

    Raises: Broken: the download fails.
    """
    known = await _join(download)
    known.waiting += 1
    try:
        if known.task is None:
            known.task = asyncio.create_task(_run_parts(known))
        while not known.task.done():
            await asyncio.wait([known.task], timeout=TICK_S)
            if not known.task.done() and known.parts:
                yield known.total, known.stored_bytes
        known.task.result()
    finally:
        known.waiting -= 1
        if not known.waiting:
            await _stop(known)


async def _join(download: Download) -> Download:
    """Return the running download of the same layer, or else this one, registered.

    A download that is being stopped still writes its parts: it is waited for, so that this one continues behind it.
    """
    running, digest = download.registry.downloads, download.layer.digest
    while digest in running and running[digest].stopping:
        await asyncio.wait([running[digest].task])
    joined: Download = running.setdefault(digest, download)
    return joined


async def _run_parts(download: Download) -> None:
    """Run a download. Raises: Broken: its first failure, a full disk among them."""
    try:
        await download.prepare()
        await download.run()
    except ExceptionGroup as group:
        raise _first(group) from None
    except OSError as fault:  # the disk is full, or the file system takes no file of this size
        raise Broken((fault.strerror or type(fault).__name__).lower()) from fault


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return the first error within a group of errors."""
    found: Exception = group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found


async def _stop(download: Download) -> None:
    """Cancel a download that nobody waits for, and remove it once its parts are stored."""
    download.stopping = True
    try:
        if download.task is not None and not download.task.done():
            download.task.cancel()
            await asyncio.gather(download.task, return_exceptions=True)
    finally:
        download.registry.downloads.pop(download.layer.digest, None)


def digest_of_file(path: Path) -> str:
    """Return the digest of a file, "sha256:" and 64 hexadecimal digits."""
    with path.open("rb") as source:
        return "sha256:" + hashlib.file_digest(source, "sha256").hexdigest()


def check(layer: Layer, repository: str) -> None:
    """Check the digest of a manifest's layer. Raises: Broken: it is missing or malformed."""
    if not layer.digest:
        raise Broken(f"{repository}: digest is empty")
    if not digest_in(layer.digest):
        raise Broken("invalid digest format")
