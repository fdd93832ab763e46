"""The request that handlers are given, and the limits on requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.replies import TEXT, HttpReply, HttpStream

Answer = HttpReply | HttpStream


@dataclass(slots=True)
class HttpRequest:
    """A request; `body` is complete, or empty if `upload` yields it in pieces. `entry` is its entry in the log."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    upload: AsyncIterator[bytes] | None = None
    entry: dict[str, Any] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on requests.

    In bytes: a JSON body, all bodies at once (more are refused with 503), an upload. Then the number of connections,
    and the seconds in which a request must be complete.
    """

    body: int = 64 << 20
    bodies: int = 128 << 20
    upload: int = 1 << 40
    connections: int = 1024
    request_seconds: float = 60.0


def plain(status: int, text: str, *headers: tuple[str, str]) -> HttpReply:
    """Return a reply in plain text, as the daemon's router sends for unknown paths and methods."""
    return HttpReply(status, text.encode(), TEXT, headers)
