"""What a handler may answer with: a whole reply, a stream of lines, or a refusal in the daemon's words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

JSON = "application/json; charset=utf-8"
BARE_JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain"


class ApiError(Exception):
    """The daemon refuses: an HTTP status and the text of its `error` field; inside a stream the text alone is sent."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Begun(ApiError):
    """A refusal after the work began and before anything was said: the daemon sends it with other headers."""

    def __init__(self, fault: ApiError, *, chunked: bool) -> None:
        super().__init__(fault.status, fault.text)
        self.chunked = chunked


class Cut(Exception):
    """The connection is to be closed at once, as a dying daemon does."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply; `content_type` may be empty where the daemon sends none."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply in chunks, each flushed as it comes; several chunks in one list are written together."""

    chunks: AsyncIterator[list[bytes]]
    content_type: str = NDJSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = field(default=())
