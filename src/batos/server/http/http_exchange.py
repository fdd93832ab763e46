"""A request and its reply over ASGI: the body within its limits, a document, or a stream that always ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from batos.protocol.errors import Busy, ProtocolError
from batos.protocol.wire_messages import parse
from batos.server.http.connections import Connection, DoorLimits
from batos.server.http.http_errors import TooLarge

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable

#: The media types of the two kinds of streams.
SSE: Final = "text/event-stream; charset=utf-8"
NDJSON: Final = "application/x-ndjson"
#: Headers of every reply: what is said here is for nobody else to keep or to guess at.
_ALWAYS: Final = (
    (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
)  # fmt: skip


class Left(Exception):
    """The client has left."""


@dataclass(slots=True)
class BodyMemory:
    """The memory for the bodies of all requests; `held` bytes of it are in use."""

    limits: DoorLimits
    held: int = 0


@dataclass(slots=True)
class Exchange:
    """A request that was let in, and its reply. `headers` are the request's, `more` those that every reply gets."""

    method: str
    path: str
    headers: Mapping[str, str]
    came_in: str
    base: str
    connection: Connection
    receive: ASGIReceiveCallable
    send: ASGISendCallable
    more: dict[str, str] = field(default_factory=dict)
    #: The mission was accepted: a client is not to ask again.
    is_accepted: bool = False
    #: Lets the mission be, of a client that has left.
    leave: Callable[[], object] | None = None
    #: The status of the reply once it has begun, else 0.
    status: int = 0

    def admit(self, path: str, came_in: str, cors: Mapping[str, str]) -> None:
        """Note what the guard has found: the path without a key, the client, and headers for a page."""
        self.path, self.came_in = path, came_in
        self.more.update(cors)
        self.connection.name_client(came_in)

    def accept(self, mission: str, leave: Callable[[], object]) -> None:
        """Name the mission that was accepted in the reply's head; `leave` is called if its client leaves early."""
        self.is_accepted, self.leave = True, leave
        self.more["x-batos-mission"] = mission

    async def read(self, room: BodyMemory) -> bytes:
        """Read the whole body. Raises: TooLarge, Busy: it, or all bodies together, are. Left: the client has left."""
        body, more = bytearray(), True
        try:
            while more:
                message = await self.receive()
                if message["type"] != "http.request":
                    raise Left
                body += message["body"]
                more = message["more_body"]
                if len(body) > room.limits.body:
                    raise TooLarge(
                        f"the body has more than {room.limits.body:,} bytes", remedy="Send less, or send it as files."
                    )
                room.held += len(message["body"])
                if room.held > room.limits.bodies:
                    raise Busy("too much is being sent at once", remedy="Ask again in a moment.")
        finally:
            room.held -= min(len(body), room.held)
        self.connection.end_request()
        return bytes(body)

    async def read_object(self, room: BodyMemory) -> dict[str, Any]:
        """Read the body as an object of JSON, whatever media type it names. Raises: ProtocolError: it is none."""
        data = await self.read(room)
        if not data:
            raise ProtocolError("the body is empty", remedy="Send an object of JSON.")
        value = parse(data)
        if not isinstance(value, dict):
            raise ProtocolError(
                f"the body is a {type(value).__name__}, not an object", remedy="Send an object of JSON."
            )
        return value

    async def begin(self, status: int, media: str, length: int | None = None) -> None:
        """Send the head of the reply."""
        self.status = status
        headers = [(b"content-type", media.encode()), *_ALWAYS]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in self.more.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def reply(self, status: int, media: str, body: bytes) -> None:
        """Send a whole reply. Bytes of the client beyond those that were read end its connection."""
        if self.connection.began is not None:
            self.more["connection"] = "close"
        await self.begin(status, media, len(body))
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def reply_json(self, value: object, status: int = 200) -> None:
        """Send a document."""
        await self.reply(status, "application/json", encode(value))

    async def stream(self, media: str, frames: AsyncIterator[bytes]) -> None:
        """Send frames as they come, the head with the first of them, and end."""
        async for frame in frames:
            if not self.status:
                await self.begin(200, media)
            await self.send({"type": "http.response.body", "body": frame, "more_body": True})
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def encode(value: object) -> bytes:
    """Write JSON as one line of bytes; what is no Unicode text is replaced.

    >>> encode({"a": "\\u00e9"})
    b'{"a":"\\xc3\\xa9"}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def event(value: object) -> bytes:
    """Write a frame of server-sent events.

    >>> event({"done": True})
    b'data: {"done":true}\\n\\n'
    """
    return b"data: %b\n\n" % encode(value)
