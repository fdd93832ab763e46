"""Replies of a handler: a whole one, or a stream of lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

JSON = "application/json; charset=utf-8"
BARE_JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply; `content_type` may be empty where the daemon sends none."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class HttpStream:
    """A reply in chunks, each flushed as it comes; several chunks in one list are written together."""

    chunks: AsyncIterator[list[bytes]]
    content_type: str = NDJSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = field(default=())
