"""The registry that a recording's pulls came from, inferred from what the daemon said of them, served on loopback.

The pulls tell the manifests: every line names a layer's digest and size, in order, the configuration last. A
layer that is a file of the models, or a text that the recording shows elsewhere, is that; another one is made-up bytes
of its size (whose digest is another: a replay's ledger binds it). A name of which the daemon said that it does not
exist is 404. Layers redirect to `localhost`, as the recorded registry's did, and are sent as slowly as they came.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire_exchange import Exchange, Recording, strings

_NAME = re.compile(r"(?:https?://)?(?:127\.0\.0\.1|localhost):(\d+)/([\w.-]+/[\w.-]+)(?::([\w.-]+))?\Z")
_PIECE = 16 * 1024
_MODEL = "application/vnd.ollama.image.model"
_ADAPTER = "application/vnd.ollama.image.adapter"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_REASONS = {200: "OK", 206: "Partial Content", 307: "Temporary Redirect", 404: "Not Found"}
_NO_PROTOCOL = b"Error code: 400\n"
_MEDIA = {"template": "template", "system": "system", "license": "license"}


@dataclass(frozen=True, slots=True)
class Layer:
    """Content of a model: its media type, its bytes and how many of them are sent in a second (0: all at once)."""

    media: str
    data: bytes
    rate: float = 0.0

    @property
    def digest(self) -> str:
        """Return the digest of the layer's data."""
        return "sha256:" + hashlib.sha256(self.data).hexdigest()


@dataclass(slots=True)
class Registry:
    """A registry: manifests by `namespace/model:tag`, layers by digest; `sent` counts the bytes of each layer."""

    manifests: dict[str, bytes] = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)
    port: int = 0
    sent: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, layers: Sequence[Layer], config: Layer) -> None:
        """Offer a model."""
        self.layers |= {layer.digest: layer for layer in (*layers, config)}
        described = [_describe(layer) for layer in layers]
        document = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": _describe(config), "layers": described}
        self.manifests[name] = json.dumps(document, separators=(",", ":")).encode()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve on a free port of loopback until the block ends; gives the port."""
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        async with server:
            yield self.port

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the daemon left, which is its right
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.read(1)
        if not first.isalpha():  # a handshake of TLS, or the end
            if first:  # neither TLS nor HTTP, as the recorded registry answered it: Go tells the two apart
                writer.write(_NO_PROTOCOL)
                await writer.drain()
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:] if line)}
        found = re.match(r"/v2/([^/]+/[^/]+)/(manifests|blobs)/([^/?]+)\Z", target)
        held = re.match(r"/held/(sha256:[0-9a-f]{64})\Z", target)
        if found and found[2] == "manifests":
            data = self.manifests.get(f"{found[1]}:{found[3]}")
            status = 404 if data is None else 200
            absent = b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'
            await self._reply(writer, status, data or absent, {"Content-Type": _MANIFEST}, bare=method == "HEAD")
        elif found and method == "GET" and found[3] in self.layers:
            await self._reply(writer, 307, b"", {"Location": f"http://localhost:{self.port}/held/{found[3]}"})
        elif held and held[1] in self.layers:
            await self._layer(writer, self.layers[held[1]], headers.get("range", ""), bare=method == "HEAD")
        elif found and found[3] in self.layers:
            await self._reply(writer, 200, self.layers[found[3]].data, {}, bare=True)
        else:
            await self._reply(writer, 404, b'{"errors":[{"code":"BLOB_UNKNOWN"}]}', {})
        return True

    async def _layer(self, writer: asyncio.StreamWriter, layer: Layer, wanted: str, *, bare: bool) -> None:
        part = re.match(r"bytes=(\d+)-(\d*)\Z", wanted)
        first = int(part[1]) if part else 0
        last = int(part[2]) if part and part[2] else len(layer.data) - 1
        data = layer.data[first : last + 1]
        marks = {"Content-Range": f"bytes {first}-{last}/{len(layer.data)}"} if part else {}
        await self._reply(writer, 206 if part else 200, data, marks, bare=True)
        if bare:
            return
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            if layer.rate:
                await asyncio.sleep(len(piece) / layer.rate)
            writer.write(piece)
            self.sent[layer.digest] = self.sent.get(layer.digest, 0) + len(piece)
            await writer.drain()

    async def _reply(
        self, writer: asyncio.StreamWriter, status: int, data: bytes, marks: Mapping[str, str], *, bare: bool = False
    ) -> None:
        headers = {**marks, "Content-Length": str(len(data))}
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", *(f"{name}: {text}" for name, text in headers.items())]
        writer.write("\r\n".join((*lines, "", "")).encode() + (b"" if bare else data))
        await writer.drain()


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a recording and those that stand for them here."""

    here: Mapping[int, int] = field(default_factory=dict)

    def outward(self, text: str) -> str:
        """Translate a text of the recording: return it with the ports of this machine."""
        return _swap_ports(text, self.here)

    def inward(self, text: str) -> str:
        """Return a text of this machine with the ports of the recording."""
        return _swap_ports(text, {here: there for there, here in self.here.items()})


def _swap_ports(text: str, ports: Mapping[int, int]) -> str:
    def other(found: re.Match[str]) -> str:
        return f"{found[1]}:{ports.get(int(found[2]), found[2])}"

    return re.sub(r"(127\.0\.0\.1|localhost):(\d{1,5})(?!\d)", other, text) if ports else text


@asynccontextmanager
async def registries(recording: Recording, speed: float) -> AsyncIterator[Ports]:
    """Serve every registry of a recording; a port at which nothing listened is one at which nothing listens."""
    ports: dict[int, int] = {}
    async with AsyncExitStack() as stack:
        for port, registry in infer(recording, speed).items():
            ports[port] = await stack.enter_async_context(registry.serving())
        for port in _named_ports(recording) - ports.keys():
            ports[port] = await stack.enter_async_context(_closed_port())
        yield Ports(ports)


@asynccontextmanager
async def _closed_port() -> AsyncIterator[int]:
    """Yield a port that is taken, so that nobody else listens there, and that refuses."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0))
    try:
        yield int(transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


def infer(recording: Recording, speed: float = 1.0) -> dict[int, Registry]:
    """Return the registries of a recording by the port that they were on."""
    found: dict[int, Registry] = {}
    for port, named in _pulls(recording):
        if any("connection refused" in text for one in named.values() for each in one for text in _strings_of(each)):
            continue
        registry = found[port] = Registry()
        for name, exchanges in named.items():
            made = _model(recording, name, exchanges, speed)
            if made is not None:
                registry.add(name.partition("/")[2], *made)
    return found


def _strings_of(exchange: Exchange) -> Iterator[str]:
    return strings(list(exchange.reply.objects()))


def _pulls(recording: Recording) -> Iterator[tuple[int, dict[str, list[Exchange]]]]:
    """Return for each port the exchanges in which a model of it was asked for, by `host/namespace/model:tag`."""
    found: dict[int, dict[str, list[Exchange]]] = {}
    for exchange in recording.exchanges:
        if exchange.path not in ("/api/pull", "/api/create"):
            continue
        for field_name in ("model", "name", "from"):
            name = _NAME.match(str(exchange.body.get(field_name, "")))
            if name is not None and (field_name == "from" or exchange.path == "/api/pull"):
                full = f"127.0.0.1:{name[1]}/{name[2]}:{name[3] or 'latest'}"
                found.setdefault(int(name[1]), {}).setdefault(full, []).append(exchange)
    yield from found.items()


def _named_ports(recording: Recording) -> set[int]:
    return {port for port, _ in _pulls(recording)}


def _model(
    recording: Recording, name: str, exchanges: Sequence[Exchange], speed: float
) -> tuple[list[Layer], Layer] | None:
    """Return the layers and the configuration of one model; None where the daemon said that it does not exist."""
    told = [text for one in exchanges for text in _strings_of(one)]
    if any("file does not exist" in text for text in told) and "success" not in told:
        return None
    lines: dict[str, list[tuple[dict[str, Any], float]]] = {}
    for one in exchanges:
        times = one.reply.line_ms or (0.0,) * len(one.reply.lines or ())
        for line, at in zip(one.reply.objects(), times, strict=False):
            if isinstance(line, dict) and "digest" in line:
                lines.setdefault(line["digest"], []).append((line, at))
    rows = [row for row in _rows(recording) if row.get("name") == name]
    if not lines:
        return _unseen_model(recording.models, rows) if rows or "success" in told else None
    held = _known_content(recording)
    made = [_layer(digest, seen, held, speed) for digest, seen in lines.items()]
    total = lines[[*lines][-1]][0][0]["total"]
    return made[:-1] or made, _configuration(rows, total)


def _rows(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield the rows of the daemon's lists of models."""
    for one in recording.exchanges:
        for found in one.reply.objects() if one.path in ("/api/tags", "/api/ps") else ():
            yield from found.get("models", ())


def _unseen_model(models: Path, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Layer], Layer]:
    """Return a model that was only pulled whole: the first base among the models stands for its weights."""
    bases = sorted(path for path in models.glob("*.gguf") if b"general.type" not in path.read_bytes()[:4096])
    layer = Layer(_MODEL, bases[0].read_bytes() if bases else b"GGUF")
    return [layer], _configuration(rows, 0)


def _known_content(recording: Recording) -> dict[str, tuple[str, bytes]]:
    """Return all known content by its digest: (media type, bytes) of files, and of texts that the daemon showed."""
    found = {}
    for path in recording.models.rglob("*.gguf"):
        data = path.read_bytes()
        media = _ADAPTER if b"adapter.type" in data[:4096] else _MODEL
        found["sha256:" + hashlib.sha256(data).hexdigest()] = (media, data)
    for one in recording.exchanges:
        for shown in one.reply.objects() if one.path == "/api/show" else ():
            for name, media in _MEDIA.items():
                text = shown.get(name)
                if isinstance(text, str):
                    data = text.encode("utf-8", "surrogatepass")
                    found["sha256:" + hashlib.sha256(data).hexdigest()] = (
                        f"application/vnd.ollama.image.{media}",
                        data,
                    )
    return found


def _layer(
    digest: str,
    seen: Sequence[tuple[Mapping[str, Any], float]],
    held: Mapping[str, tuple[str, bytes]],
    speed: float,
) -> Layer:
    rate = speed * _rate(seen)
    if digest in held:
        return Layer(*held[digest], rate)
    size = int(seen[0][0]["total"])
    text = f"A layer of {size} bytes whose content the recording does not show.\n".encode()
    return Layer("application/vnd.ollama.image.license", (text * (size // len(text) + 1))[:size], rate)


def _rate(seen: Sequence[tuple[Mapping[str, Any], float]]) -> float:
    """Return the bytes a second of a download, by the longest run of growing lines; 0 where it was there at once."""
    spans: list[tuple[float, float]] = []
    start, before = 0, -1.0
    for number, (_, at) in enumerate((*seen, ({}, -1.0))):
        if at < before:
            first, last = seen[start], seen[number - 1]
            grown = last[0].get("completed", 0) - first[0].get("completed", 0)
            spans.append((float(grown), last[1] - first[1]))
            start = number
        before = at
    grown, spent = max(spans, default=(0.0, 0.0))
    return grown / (spent / 1000) if grown > 0 and spent > 0 else 0.0


def _configuration(rows: Sequence[Mapping[str, Any]], size: int) -> Layer:
    """Return a configuration that says what the daemon's lists say, of the recorded size where that is enough."""
    details = rows[-1]["details"] if rows else {}
    document = {
        "model_format": details.get("format", "gguf"),
        "model_family": details.get("family", ""),
        "model_families": details.get("families"),
        "model_type": details.get("parameter_size", ""),
        "file_type": details.get("quantization_level", ""),
        "architecture": "amd64",
        "os": "linux",
    }
    return Layer(_CONFIG, json.dumps(document, separators=(",", ":")).encode().ljust(size))


def _describe(layer: Layer) -> dict[str, Any]:
    return {"mediaType": layer.media, "digest": layer.digest, "size": len(layer.data)}
