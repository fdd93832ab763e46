"""The connections of the HTTP door: uvicorn's protocol over h11, with limits on what clients send and leave unread."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from batos.protocol.errors import InternalError

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

#: Serves one request, as an ASGI application.
Serve: TypeAlias = "Callable[[Scope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]"

#: Faults of clients are answered and not logged; ours are logged where they happen.
_LOG = logging.getLogger(__name__)
_LOG.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """The most that the door takes; sizes in bytes, times in seconds."""

    #: A request's head, its body, and all bodies at once.
    head: int = 32 * 1024
    body: int = 2**20
    bodies: int = 32 * 2**20
    #: Connections at once, and the requests of one key that are under way.
    connections: int = 512
    requests: int = 128
    #: Until a request is complete, and until a client that has stopped reading is cut off.
    request: float = 30.0
    unread: float = 60.0
    #: Between two requests on one connection.
    idle: float = 120.0
    #: Between two signs of life in a stream, and between looks at slow clients and revoked keys.
    beat: float = 10.0
    look: float = 1.0


class _Wire(h11.Connection):
    """h11's state machine, which keeps the status for the last malformed request."""

    refused = 400

    def next_event(self) -> Any:
        """Return the next event; the status that h11 suggests for a malformed request is kept."""
        try:
            return super().next_event()
        except h11.RemoteProtocolError as fault:
            self.refused = fault.error_status_hint
            raise


class Connection(H11Protocol):
    """The connection of a client. Its request's task is cancelled when the client leaves.

    `began` is the loop's time at which a request that is not complete began; `unread` the one since which the client
    has read nothing though something waits for it. `came_in` is the client, as the guard names it.
    """

    if TYPE_CHECKING:
        conn: _Wire

    def __init__(self, config: Config, state: ServerState, limits: DoorLimits) -> None:
        super().__init__(config, state, {})
        self.app_state = {"connection": self}
        self.conn = _Wire(h11.SERVER, limits.head)
        self.logger, self.access_log = _LOG, False
        self.began: float | None = None
        self.unread: float | None = None
        self.task: asyncio.Task[Any] | None = None
        self.came_in = ""
        self._most = limits.connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or drop it if there are too many."""
        if not isinstance(transport, asyncio.Transport):
            raise InternalError(f"a connection has a {type(transport).__name__}, which carries no bytes")
        self.began = self.loop.time()
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.abort()

    def name_client(self, came_in: str) -> None:
        """Note the client, so that its connection ends when its key is revoked."""
        self.came_in = came_in

    def end_request(self) -> None:
        """Note that the request is complete: its time limit is over."""
        self.began = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the current request."""
        super().connection_lost(exc)
        self.began = self.unread = None
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read bytes; the time limit of a request begins with its first byte."""
        if self.began is None and self.task is None:
            self.began = self.loop.time()
        super().data_received(data)

    def pause_writing(self) -> None:
        """Note since when the client reads nothing."""
        super().pause_writing()
        self.unread = self.loop.time()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        self.unread = None

    def on_response_complete(self) -> None:
        """Continue with the bytes that the client sent in advance."""
        self.task = None
        if self.conn.trailing_data[0]:
            self.began = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that h11 could not read, with the status that h11 suggests."""
        self.began = None
        if self.task is not None and self.cycle.response_started:
            self.transport.abort()
            return
        status = self.conn.refused
        text = b"The head of this request is too large." if status == 431 else b"This is no HTTP request."
        head = b"HTTP/1.1 %d %b\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b\n"
        reason = b"Request Header Fields Too Large" if status == 431 else b"Bad Request"
        self.transport.write(head % (status, reason, len(text) + 1, text))
        self.transport.close()

    def is_overdue(self, now: float, limits: DoorLimits) -> bool:
        """Test if the client sends its request, or reads its reply, too slowly."""
        late = self.began is not None and now - self.began > limits.request
        return late or (self.unread is not None and now - self.unread > limits.unread)


class Listener:
    """Accepts connections at one address, and drops those that are too slow or whose key is known no more."""

    def __init__(self, serve: Serve, limits: DoorLimits, admits: Callable[[str], bool]) -> None:
        self._serve, self._limits, self._admits = serve, limits, admits
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """Return the number of connected clients."""
        return len(self._state.connections)

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Begin to accept connections; return the port, which is chosen for 0. Raises: OSError: the port is taken."""
        config = Config(
            self._serve, interface="asgi3", http="h11", ws="none", lifespan="off", log_config=None,
            proxy_headers=False, server_header=False, workers=1, timeout_keep_alive=int(self._limits.idle),
        )  # fmt: skip
        config.load()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(config, self._state, self._limits), host.strip("[]"), port, backlog=512, ssl=tls
        )
        self._looking = asyncio.create_task(self._look())
        return int(self._server.sockets[0].getsockname()[1])

    def stop_accepting(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def close(self, seconds: float) -> None:
        """Wait so long for the requests under way, then drop every connection and wait until its work has ended."""
        self.stop_accepting()
        if self._looking is not None:
            self._looking.cancel()
        if tasks := list(self._state.tasks):
            await asyncio.wait(tasks, timeout=seconds)
        for each in self._open():
            if each.task is None:
                each.transport.close()
            else:
                each.transport.abort()
                each.task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _open(self) -> Iterator[Connection]:
        return (each for each in list(self._state.connections) if isinstance(each, Connection))

    async def _look(self) -> None:
        """Drop, for ever, the connections of clients that are too slow or are known no more."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.look)
            for each in self._open():
                if each.is_overdue(loop.time(), self._limits) or (each.came_in and not self._admits(each.came_in)):
                    each.transport.abort()
