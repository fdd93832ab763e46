"""The connection of a client: uvicorn's protocol over h11, changed to behave like Go's server."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ollama_emulator.emulator_errors import EmulatorError

HEADER_BYTES = 32 * 1024
_REFUSED = {
    413: b"413 Request Entity Too Large",
    431: b"431 Request Header Fields Too Large",
    503: b"503 Service Unavailable",
}
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
#: Malformed requests are answered and not logged; errors of the emulator are.
_LOG = logging.getLogger(__name__)
_LOG.setLevel(logging.ERROR)


class GoWire(h11.Connection):
    """h11's state machine with three additions.

    `refused` is the status for the last malformed request. With `unframed` the next head has neither a length nor
    chunks. With `joined` the next head is written together with the body that follows, which saves a system call.
    """

    refused = 400
    unframed = False
    joined = False
    _head: tuple[bytes, ...] = ()

    def next_event(self) -> Any:
        """Return the next event; keep the status that h11 suggests for a malformed request in `refused`."""
        try:
            return super().next_event()
        except h11.RemoteProtocolError as fault:
            self.refused = fault.error_status_hint
            raise

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return the bytes to send for an event, after those of a head that was held back for it."""
        pieces = super().send_with_data_passthrough(event)
        if pieces is None:
            return None
        if isinstance(event, h11.Response):
            if self.unframed:
                pieces = [piece for piece in pieces if piece != _CHUNKED]
            if self.joined:
                self._head, pieces = tuple(pieces), []
            self.unframed = self.joined = False
        elif self._head:
            pieces, self._head = [*self._head, *pieces], ()
        return pieces


class GoConnection(H11Protocol):
    """The connection of a client. `began` is the loop's time at which an incomplete request began, else None.

    `task` serves the current request and is cancelled if the client leaves.
    """

    if TYPE_CHECKING:
        conn: GoWire

    def __init__(self, config: Config, state: ServerState, most: int) -> None:
        super().__init__(config, state, {})
        self.app_state = {"connection": self}
        self.conn = GoWire(h11.SERVER, HEADER_BYTES)
        self.logger = _LOG
        self.access_log = False
        self.began: float | None = None
        self.task: asyncio.Task[Any] | None = None
        self._most = most

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or drop it if there are too many."""
        if not isinstance(transport, asyncio.Transport):
            raise EmulatorError(f"a connection has a {type(transport).__name__}, which carries no bytes")
        if len(self.connections) >= self._most:
            self.transport = transport
            transport.abort()
        else:
            super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the current request."""
        super().connection_lost(exc)
        self.began = None
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read bytes; the time limit of a request begins with its first byte."""
        if self.began is None and self.task is None:
            self.began = self.loop.time()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Continue with the bytes that the client sent in advance."""
        self.task = None
        if self.conn.trailing_data[0]:
            self.began = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that h11 could not parse, with the status that h11 suggests."""
        self.refuse(self.conn.refused)

    def refuse(self, status: int) -> None:
        """Reply with a status and its plain text, and close. A reply that was already begun is cut off instead."""
        self.began = None
        if self.task is not None and self.cycle.response_started:
            self.abort()
            return
        text = _REFUSED.get(status, b"400 Bad Request")
        head = b"HTTP/1.1 %b\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%b"
        self.transport.write(head % (text, text))
        self.close()

    def close(self) -> None:
        """Close the connection once all bytes are sent, even within a reply."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.close()

    def abort(self) -> None:
        """Close the connection at once, without sending the rest."""
        self.transport.abort()
