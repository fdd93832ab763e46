"""The request that handlers see, and the limits that it has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.replies import TEXT, HttpReply, HttpStream

Answer = HttpReply | HttpStream


@dataclass(slots=True)
class HttpRequest:
    """A request; `body` is whole, or empty where `upload` gives it in pieces; `entry` is its entry in the log."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    upload: AsyncIterator[bytes] | None = None
    entry: dict[str, Any] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds on clients' requests.

    Bytes of one JSON body, of all that are held at once (503 beyond), of an upload; connections at once; the seconds in
    which a request has to be sent.
    """

    body: int = 64 << 20
    bodies: int = 128 << 20
    upload: int = 1 << 40
    connections: int = 1024
    request_seconds: float = 60.0


def plain(status: int, text: str, *headers: tuple[str, str]) -> HttpReply:
    """Return a reply in plain text, as the daemon's router gives for unknown paths and methods."""
    return HttpReply(status, text.encode(), TEXT, headers)
