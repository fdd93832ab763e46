"""The replies of handlers: whole ones, and streams of lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

JSON = "application/json; charset=utf-8"
BARE_JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply; an empty `content_type` sends no such header, and `chunked` sends no length."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class HttpStream:
    """A reply in chunks, each sent as soon as it exists; the pieces in one list are one chunk."""

    chunks: AsyncIterator[list[bytes]]
    content_type: str = NDJSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = field(default=())
