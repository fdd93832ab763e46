"""Layers that really come down from a registry on this machine: shared, continued, checked, refused."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.inference.counting_bridge import until
from tests.inference.still_clock import on_still_clock, pass_time
from tests.ollama_emulator.clients import Client, Start, started
from tests.ollama_emulator.recordings import MODELS

from ollama_emulator.clocks import SystemClock
from ollama_emulator.http.incoming import HttpLimits
from ollama_emulator.library.model_tags import parse
from ollama_emulator.library.store import Layer
from ollama_emulator.pulling.remote import RemoteModel
from ollama_emulator.pulling.transfer import TICK_S, Download, LayerPart, layer

_WEIGHTS = (MODELS / "tiny-b.gguf").read_bytes()
_LARGE = Random(1).randbytes(390_000)
_CONFIG = (
    b'{"model_format":"gguf","model_family":"llama","model_families":["llama"],"model_type":"1B","file_type":"F16"}'
)
_PIECE = 16_384


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


_BLOBS = {_digest(data): data for data in (_WEIGHTS, _LARGE, _CONFIG)}


def _layer(media: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media, "digest": _digest(data), "size": len(data)}


_MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "config": _layer("application/vnd.docker.container.image.v1+json", _CONFIG),
        "layers": [
            _layer("application/vnd.ollama.image.model", _WEIGHTS),
            _layer("application/vnd.ollama.image.license", _LARGE),
        ],
    }
).encode()


_JUNK = b"hello"
_SERVED = {**_BLOBS, _digest(_JUNK): _JUNK}


def _holding(*layers: dict[str, Any], config: bytes = _CONFIG) -> bytes:
    held = _layer("application/vnd.docker.container.image.v1+json", config)
    return json.dumps({"config": held, "layers": layers}).encode()


#: What a hostile registry answers where it is asked for a manifest of that tag.
_HOSTILE: dict[str, tuple[Any, ...]] = {
    "port": (302, b"", "Location: http://127.0.0.1:999999/\r\n"),
    "bracket": (302, b"", "Location: http://[::1/\r\n"),
    "letters": (302, b"", "Location: http://127.0.0.1:abc/\r\n"),
    "file": (302, b"", "Location: file:///etc/passwd\r\n"),
    "user": (302, b"", "Location: http://127.0.0.1@example.com/\r\n"),
    "mapped": (302, b"", "Location: http://[::ffff:203.0.113.9]/\r\n"),
    "decimal": (302, b"", "Location: http://2130706433/\r\n"),
    "prefix": (302, b"", "Location: http://localhost.example.com/\r\n"),
    "list": (200, b"[1]"),
    "config": (200, _holding(config=_JUNK)),
    "many": (200, _holding(*[_layer("x", b"%d" % at) for at in range(1001)])),
    "null": (200, b"null"),
    "params": (200, _holding(_layer("application/vnd.ollama.image.params", _JUNK))),
    "messages": (200, _holding(_layer("application/vnd.ollama.image.messages", _JUNK))),
}


@dataclass
class _Registry:
    """A registry that sends layers from another address; it may break off, reverse or lack them.

    With `pieces` it sends as many pieces of the large layer as those allow.
    """

    port: int = 0
    pieces: asyncio.Semaphore | None = None
    breaks: int = 0
    reverses: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    serving: set[asyncio.Task[Any]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                await self._read(reader, writer)
                await writer.drain()
            finally:
                writer.close()
                self.serving.discard(task)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (first := await reader.readexactly(1)) == b"\x16":  # a client that speaks TLS
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        ranges = head.lower().partition("range: bytes=")[2].partition("\r\n")[0]
        self.asked.append((method, path, ranges))
        await self._answer(writer, method, path, ranges)

    async def _answer(self, writer: asyncio.StreamWriter, method: str, path: str, ranges: str) -> None:
        kind, _, what = path.rpartition("/")
        if path.endswith("/manifests/v1"):
            _write(writer, 200, _MANIFEST)
        elif path.endswith("/manifests/secret"):
            _write(writer, 401, b"")
        elif path.endswith("/manifests/busy"):
            _write(writer, 503, b"busy")
        elif path.endswith("/manifests/away"):
            _write(writer, 302, b"", "Location: http://example.com/x\r\n")
        elif path.endswith("/manifests/broken"):
            _write(writer, 200, b'{"layers":5}')
        elif path.rpartition("/manifests/")[2] in _HOSTILE:
            _write(writer, *_HOSTILE[path.rpartition("/manifests/")[2]])
        elif what not in _SERVED:
            _write(writer, 404, b"")
        elif method == "HEAD":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_SERVED[what]))
        elif "/blobs" in kind:
            _write(writer, 307, b"", f"Location: http://localhost:{self.port}/direct/{what}\r\n")
        else:
            await self._send(writer, _SERVED[what], ranges)

    async def _send(self, writer: asyncio.StreamWriter, data: bytes, ranges: str) -> None:
        start, _, end = ranges.partition("-")
        part = data[int(start) : int(end) + 1]
        part = part[::-1] if self.reverses else part
        writer.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\n\r\n" % len(part))
        for at in range(0, len(part), _PIECE):
            if self.breaks and at:
                self.breaks -= 1
                return
            if self.pieces is not None and data is _LARGE:
                await self.pieces.acquire()
            writer.write(part[at : at + _PIECE])
            await writer.drain()
            await asyncio.sleep(0)

    def send(self, pieces: int) -> None:
        """Send so many pieces more."""
        assert self.pieces is not None
        for _ in range(pieces):
            self.pieces.release()


def _write(writer: asyncio.StreamWriter, status: int, body: bytes, headers: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)


@asynccontextmanager
async def _serving(pieces: asyncio.Semaphore | None = None) -> AsyncIterator[_Registry]:
    """A registry on a free port."""
    made = _Registry(pieces=pieces)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
        for task in made.serving:
            task.cancel()
        await asyncio.gather(*made.serving, return_exceptions=True)


@pytest.fixture
async def registry() -> AsyncIterator[_Registry]:
    """A registry that sends at once."""
    async with _serving() as made:
        yield made


class _HurriedClock(SystemClock):
    """A clock that knows no pauses."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def _named(registry: _Registry, tag: str = "v1") -> dict[str, Any]:
    return {"model": f"http://127.0.0.1:{registry.port}/library/tiny:{tag}", "insecure": True}


async def test_a_model_comes_down_once(client: Client, registry: _Registry) -> None:
    """Across the redirect, with the digest of the manifest as served; asked again, nothing is fetched but that."""
    lines = await client.lines("/api/pull", **_named(registry))
    assert lines[-1] == {"status": "success"}
    row = (await client.http.get("/api/tags")).json()["models"][0]
    assert row["name"] == f"127.0.0.1:{registry.port}/library/tiny:v1"
    assert row["digest"] == hashlib.sha256(_MANIFEST).hexdigest()
    assert row["size"] == len(_WEIGHTS) + len(_LARGE) + len(_CONFIG)
    asked = len(registry.asked)
    again = await client.lines("/api/pull", **_named(registry))
    assert [(line["total"], line["completed"]) for line in again if "total" in line] == [
        (len(data), len(data)) for data in (_WEIGHTS, _LARGE, _CONFIG)
    ]
    assert len(registry.asked) == asked + 1
    assert (await client.http.get("/_emulator/registry")).json()["pulled"] == {
        digest: len(data) for digest, data in _BLOBS.items()
    }


def _down(client: Client) -> int:
    """How many bytes of the large layer came down."""
    return client.emulator.daemon.registry.pulled.get(_digest(_LARGE), 0)


def _has_down(client: Client, many: int) -> bool:
    return _down(client) == many


@on_still_clock
async def test_progress_is_told_while_bytes_come() -> None:
    """The counts grow, and the last one before the end is short of the total."""
    async with started() as client, _serving(asyncio.Semaphore(0)) as registry:
        counts: list[int] = []
        async with client.http.stream("POST", "/api/pull", json=_named(registry)) as reply:
            lines = reply.aiter_lines()
            for pieces in (2, 3):
                before = _down(client)
                registry.send(pieces)
                await until(partial(_has_down, client, before + pieces * _PIECE))
                await pass_time(TICK_S)
                counts.append(await _told_of_the_large(lines))
            registry.send(1_000)
            rest = [json.loads(line) async for line in lines]
    assert counts == [2 * _PIECE, 5 * _PIECE]
    assert [line for line in rest if line.get("digest") == _digest(_LARGE)] == []
    assert rest[-1] == {"status": "success"}


async def _told_of_the_large(lines: AsyncIterator[str]) -> int:
    """The next count of bytes of the large layer."""
    while (line := json.loads(await anext(lines))).get("digest") != _digest(_LARGE):
        pass
    return int(line["completed"])


async def _leave_half_way(client: Client, registry: _Registry) -> None:
    """Begin a pull, and leave when two pieces of the large layer are there."""
    async with client.http.stream("POST", "/api/pull", json=_named(registry)):
        registry.send(2)
        await until(partial(_has_down, client, 2 * _PIECE))
    await until(lambda: not client.emulator.daemon.registry.downloads)
    registry.send(1_000)


@on_still_clock
async def test_a_pull_that_was_left_goes_on() -> None:
    """No byte comes twice, and two who wait for the rest share it."""
    async with started() as client, _serving(asyncio.Semaphore(0)) as registry:
        await _leave_half_way(client, registry)
        both = await asyncio.gather(*(client.lines("/api/pull", **_named(registry)) for _ in range(2)))
        assert [lines[-1] for lines in both] == [{"status": "success"}] * 2
        assert _down(client) == len(_LARGE)
        direct = f"/direct/{_digest(_LARGE)}"
        starts = [ranges.partition("-")[0] for _, path, ranges in registry.asked if path == direct]
        assert starts == ["0", str(2 * _PIECE)]
        assert client.emulator.store.content(_digest(_LARGE)) == _LARGE


@on_still_clock
async def test_a_pull_goes_on_after_a_restart(tmp_path: Path) -> None:
    """What was down is in the store's folder, with how far each part is; nothing of it is left in the end."""
    async with _serving(asyncio.Semaphore(0)) as registry:
        async with started(store=tmp_path) as client:
            await _leave_half_way(client, registry)
        async with started(store=tmp_path, models=()) as client:
            assert (await client.lines("/api/pull", **_named(registry)))[-1] == {"status": "success"}
            assert _down(client) == len(_LARGE) - 2 * _PIECE
            assert client.emulator.store.content(_digest(_LARGE)) == _LARGE
    assert not list((tmp_path / "blobs").glob("*partial*"))


async def test_a_layer_in_several_parts(client: Client, registry: _Registry) -> None:
    """They come at once and are put where they belong; those that are there are not asked for."""
    daemon = client.emulator.daemon
    name = parse(f"127.0.0.1:{registry.port}/library/tiny:v1")
    assert name is not None
    parts = [LayerPart(0, 0, 100_000), LayerPart(1, 100_000, 200_000), LayerPart(2, 300_000, 90_000)]
    wanted = Layer("application/vnd.ollama.image.license", _digest(_LARGE), len(_LARGE))
    download = Download(RemoteModel(name, True, 1 << 20), wanted, daemon.store, daemon.registry, daemon.clock, parts)
    told = [done async for _, done in layer(download)]
    assert told == sorted(told)
    assert daemon.store.content(_digest(_LARGE)) == _LARGE
    ranges = sorted(ranges for _, path, ranges in registry.asked if ranges)
    assert ranges == ["0-99999", "100000-299999", "300000-389999"]


async def test_a_part_that_breaks_off_is_asked_for_again(start: Start, registry: _Registry) -> None:
    """From where it was; when it never gets further the pull says so, and what came is kept."""
    async with start(_HurriedClock()) as client:
        registry.breaks = 3
        assert (await client.lines("/api/pull", **_named(registry)))[-1] == {"status": "success"}
        assert client.emulator.daemon.registry.pulled[_digest(_LARGE)] == len(_LARGE)
    async with start(_HurriedClock()) as client:
        registry.breaks = 100
        last = (await client.lines("/api/pull", **_named(registry)))[-1]
        assert last == {"error": "max retries exceeded: unexpected EOF"}
        registry.breaks = 0
        assert (await client.lines("/api/pull", **_named(registry)))[-1] == {"status": "success"}
        assert client.emulator.daemon.registry.pulled[_digest(_WEIGHTS)] == len(_WEIGHTS)


async def test_other_bytes_than_promised_are_not_kept(client: Client, registry: _Registry) -> None:
    """The digest is looked at when all is down, and what has another one is gone."""
    registry.reverses = True
    last = (await client.lines("/api/pull", **_named(registry)))[-1]
    wanted, found = _digest(_WEIGHTS), _digest(_WEIGHTS[::-1])
    assert last == {"error": f"digest mismatch, file must be downloaded again: want {wanted}, got {found}"}
    assert wanted not in client.emulator.store.blobs
    registry.reverses = False
    for digest in list(client.emulator.store.blobs):
        client.emulator.store.drop(digest)
    assert (await client.lines("/api/pull", **_named(registry)))[-1] == {"status": "success"}


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("absent", "file does not exist"),
        ("busy", "503: busy"),
        ("secret", 'realm host "" does not match original host "127.0.0.1:{port}"'),
        ("broken", "json: cannot unmarshal number into Go struct field Manifest.layers of type []manifest.Layer"),
        ("away", 'Get "http://example.com/x": dial tcp: lookup example.com on 127.0.0.53:53: no such host'),
    ],
)
async def test_a_registry_that_refuses(client: Client, registry: _Registry, tag: str, text: str) -> None:
    """In the daemon's words: an error line, or a status of 500 when whole; nothing off this machine is asked."""
    error = {"error": "pull model manifest: " + text.replace("{port}", str(registry.port))}
    assert (await client.lines("/api/pull", **_named(registry, tag)))[-1] == error
    whole = await client.post("/api/pull", stream=False, **_named(registry, tag))
    assert (whole.status_code, whole.json()) == (500, error)


async def test_a_registry_that_speaks_no_tls_or_is_not_there(client: Client, registry: _Registry) -> None:
    """Without `insecure` TLS is spoken, whatever scheme the name has."""
    url = f"//127.0.0.1:{registry.port}/v2/library/tiny/manifests/v1"
    lines = await client.lines("/api/pull", model=f"http://127.0.0.1:{registry.port}/library/tiny:v1")
    said = f'Get "https:{url}": tls: first record does not look like a TLS handshake'
    assert lines[-1] == {"error": f"pull model manifest: {said}"}
    lines = await client.lines("/api/pull", model="127.0.0.1:1/library/tiny:v1", insecure=True)
    assert lines[-1]["error"].endswith('v1": dial tcp 127.0.0.1:1: connect: connection refused')


async def test_a_layer_may_be_too_large(start: Start, registry: _Registry) -> None:
    """The bound is that of uploads."""
    async with start(limits=HttpLimits(upload=1000)) as client:
        last = (await client.lines("/api/pull", **_named(registry)))[-1]
        assert last["error"].startswith(f"a layer of {len(_WEIGHTS)} bytes is refused")


async def test_create_pulls_what_it_is_made_from(client: Client, registry: _Registry) -> None:
    """But speaks TLS, as the daemon does: a base from such a registry has to be pulled first."""
    base = f"127.0.0.1:{registry.port}/library/tiny:v1"
    refused = await client.lines("/api/create", model="robin", **{"from": base})
    assert "tls: first record" in refused[-1]["error"]
    await client.lines("/api/pull", **_named(registry))
    made = await client.lines("/api/create", model="robin", **{"from": base, "system": "x"})
    assert made[-1] == {"status": "success"}


async def test_the_simulated_registry_is_told_at_run_time(client: Client) -> None:
    """Cut twice, offline, corrupt, forgotten: as a file would tell it from the start."""
    told = {"models": [{"name": "late:1b", "like": "llama3.2:1b", "fails_at": 1, "cuts": 2, "size": 700_000}]}
    assert (await client.http.post("/_emulator/registry", json=told)).status_code == 200
    for _ in range(2):
        assert (await client.lines("/api/pull", model="late:1b"))[-1] == {"error": "max retries exceeded: EOF"}
    assert (await client.lines("/api/pull", model="late:1b"))[-1] == {"status": "success"}
    state = (await client.http.get("/_emulator/registry")).json()
    digest = state["models"]["registry.ollama.ai/library/late:1b"]
    assert state["pulled"][digest] == 700_000
    await client.http.post("/_emulator/registry", json={"models": [{"name": "bad:1b", "corrupt": True}]})
    assert "digest mismatch" in (await client.lines("/api/pull", model="bad:1b"))[-1]["error"]
    await client.http.post("/_emulator/registry", json={"offline": True})
    assert "no such host" in (await client.lines("/api/pull", model="new:1b"))[-1]["error"]
    wrong = await client.http.post("/_emulator/registry", json={"models": [{"name": "x", "colour": "red"}]})
    assert wrong.status_code == 400
    assert "registry.ollama.ai/library/x:latest" not in (await client.http.get("/_emulator/registry")).json()["models"]


@pytest.mark.parametrize("tag", [tag for tag in _HOSTILE if tag not in ("null", "params", "messages")])
async def test_a_hostile_registry_is_refused(client: Client, registry: _Registry, tag: str) -> None:
    """Addresses that are none or another machine's, manifests that are none: an error of the pull, and no more."""
    reply = await client.post("/api/pull", **_named(registry, tag), stream=False)
    assert reply.status_code == 500
    assert reply.json()["error"]
    assert (await client.chat())["done"]


@pytest.mark.parametrize("tag", ["null", "params", "messages"])
async def test_a_model_of_junk_spoils_no_other(start: Start, registry: _Registry, tmp_path: Path, tag: str) -> None:
    """It is told of when it is asked for; the list of models and a restart go past it."""
    async with start(store=tmp_path) as client:
        assert (await client.post("/api/pull", **_named(registry, tag), stream=False)).status_code == 200
        shown = await client.post("/api/show", model=_named(registry, tag)["model"])
        assert shown.status_code == (200 if tag == "null" else 500)
        assert len((await client.http.get("/api/tags")).json()["models"]) == (3 if tag == "null" else 2)
    async with start(store=tmp_path) as client:
        assert (await client.http.get("/api/tags")).status_code == 200


async def test_a_manifest_that_was_spoilt_on_disk_is_as_if_it_were_not_there(start: Start, tmp_path: Path) -> None:
    """A store is opened whatever lies in it."""
    spoilt = tmp_path / "manifests" / "registry.ollama.ai" / "library" / "spoilt"
    spoilt.mkdir(parents=True)
    for tag, text in {"a": "{", "b": '{"layers":[5]}', "c": '{"config":{"digest":"x","size":"y"}}', "d": "[]"}.items():
        (spoilt / tag).write_text(text, encoding="utf-8")
    async with start(store=tmp_path) as client:
        assert len((await client.http.get("/api/tags")).json()["models"]) == 2
