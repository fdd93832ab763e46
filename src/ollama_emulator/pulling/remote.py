"""Ask a real registry on this machine for manifests and layers, with the daemon's requests."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from ollama_emulator.go.json import quote
from ollama_emulator.go.scan import EMPTY, GoError, exact
from ollama_emulator.go.types import STRING, GoStruct, Scalar, Slice, decode
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.store import MANIFEST, Layer, layer_of
from ollama_emulator.pulling.fetching import Broken, RegistryReply, fetch

REDIRECTS = 10
_MOST_LAYERS = 1000
_MANIFEST_BYTES = 4 << 20
_LAYER = GoStruct(
    "manifest.Layer",
    {"mediaType": STRING, "digest": STRING, "size": Scalar("int64", "int"), "from": STRING, "name": STRING},
)
_MANIFEST = GoStruct(
    "manifest.Manifest",
    {
        "schemaVersion": Scalar("int", "int"),
        "mediaType": STRING,
        "config": _LAYER,
        "layers": Slice("[]manifest.Layer", _LAYER),
    },
)


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model in a real registry; `most` is the size of the largest layer accepted, in bytes."""

    name: Name
    insecure: bool
    most: int

    def url(self, kind: str, what: str) -> str:
        """Return the address of a manifest or a blob: `kind` is "manifests" or "blobs", `what` a tag or a digest."""
        scheme = "http" if self.insecure else "https"
        return f"{scheme}://{self.name.host}/v2/{self.name.namespace}/{self.name.model}/{kind}/{what}"


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """A registry's reply: its status, redirect, length in bytes, login challenge, and its body if that was read."""

    status: int
    location: str
    length: int
    challenge: str
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode("utf-8", "replace")


async def manifest(source: RemoteModel) -> tuple[bytes, list[Layer]]:
    """Fetch a model's manifest; return its text and its layers, the configuration last.

    Raises: Broken: the registry does not serve it, or it is malformed.
    """
    told = await ask("GET", source.url("manifests", source.name.tag), {"Accept": MANIFEST})
    return told.body, await asyncio.to_thread(_layers, told.body)  # in a thread, for there may be a thousand layers


def _layers(text: bytes) -> list[Layer]:
    """Return the layers of a manifest's JSON. Raises: Broken: it is damaged."""
    try:
        found = decode(_MANIFEST, exact(text)) or {}
    except GoError as fault:
        why = str(fault)
        raise Broken("unexpected end of JSON input" if why in (EMPTY, "unexpected EOF") else why) from None
    layers = found.get("layers") or ()
    if len(layers) > _MOST_LAYERS:
        raise Broken(f"a manifest of {len(layers)} layers is refused: this emulator takes up to {_MOST_LAYERS}")
    held = layer_of(found.get("config") or {})
    return [*map(layer_of, layers), *([held] if held.digest else [])]


async def ask(method: str, url: str, headers: dict[str, str] | None = None) -> ReplyHead:
    """Send a request, follow redirects, log in once if asked to, and return the reply.

    Raises: Broken: the registry refuses, in the daemon's words.
    """
    sent = dict(headers or {})
    for _ in range(2):
        told = await _follow_redirects(method, url, sent)
        if told.status == 401:
            sent["Authorization"] = f"Bearer {await _token(told, url)}"
        elif told.status == 404:
            raise Broken("file does not exist")
        elif told.status >= 400:
            raise Broken(f"{told.status}: {told.text}")
        else:
            return told
    raise Broken("unauthorized: access denied")


async def _token(told: ReplyHead, url: str) -> str:
    """Fetch a token from the registry's own host. The request is not signed, since the emulator has no key."""
    realm = told.challenge.partition('realm="')[2].partition('"')[0]
    host, wanted = urlsplit(realm).netloc, urlsplit(url).netloc
    if host != wanted:
        raise Broken(f"realm host {quote(host)} does not match original host {quote(wanted)}")
    given = await _follow_redirects("GET", realm, {})
    if given.status >= 400:
        raise Broken(f"{given.status}: {given.text}" if given.text else f"{given.status}")
    try:
        return str(json.loads(given.body)["token"])
    except (ValueError, KeyError, TypeError):
        raise Broken("unexpected end of JSON input") from None


async def _follow_redirects(method: str, url: str, headers: dict[str, str]) -> ReplyHead:
    """Send a request to where the redirects lead. Raises: Broken: there are too many."""
    for _ in range(REDIRECTS + 1):
        told = await once(method, url, headers)
        if not told.location:
            return told
        url = told.location
    raise Broken(f"{method.capitalize()} {quote(url)}: stopped after {REDIRECTS} redirects")


async def once(method: str, url: str, headers: dict[str, str] | None = None, *, read: bool = True) -> ReplyHead:
    """Send one request and return its reply; the body is read only if `read` is set and it is no redirect."""
    async with fetch(method, url, headers) as reply:
        body = await _body(reply) if read and not reply.location else b""
        return ReplyHead(reply.status, reply.location, reply.length, reply.headers.get("www-authenticate", ""), body)


async def _body(reply: RegistryReply) -> bytes:
    """Read a reply's whole body. Raises: Broken: it is too large for a manifest."""
    body = bytearray()
    async for piece in reply.pieces():
        body += piece
        if len(body) > _MANIFEST_BYTES:
            raise Broken(f"a reply of more than {_MANIFEST_BYTES} bytes is no manifest")
    return bytes(body)
