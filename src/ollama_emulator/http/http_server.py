"""The emulator's HTTP/1.1 server: uvicorn, framed like Go's server, with limits on all that clients send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from uvicorn.config import Config
from uvicorn.server import ServerState

from ollama_emulator.emulator_errors import EmulatorError
from ollama_emulator.http.exchange import BodyRoom, HttpExchange
from ollama_emulator.http.go_connection import GoConnection
from ollama_emulator.http.incoming import Handler, HttpLimits, HttpRequest

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

_KEPT_S = 10**6  # seconds between two requests of a client: practically no limit


class HttpServer:
    """A listener with its connections, as an ASGI application; `handle` answers every request.

    `streams(method, path)` says if the handler reads the body itself, in pieces.
    """

    def __init__(self, handle: Handler, streams: Callable[[str, str], bool], limits: HttpLimits) -> None:
        self._handle = handle
        self._streams = streams
        self._limits = limits
        self._room = BodyRoom(limits)
        self._state = ServerState()
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """Return the number of connected clients."""
        return len(self._state.connections)

    @property
    def body_bytes(self) -> int:
        """Return the bytes of bodies in memory, of all current requests."""
        return self._room.held

    async def listen(self, host: str, port: int) -> int:
        """Start to accept connections; return the port, which is chosen for 0. Raises: OSError: the port is taken."""
        config = Config(
            self._serve,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            workers=1,  # otherwise uvicorn reads the environment
            timeout_keep_alive=_KEPT_S,
        )
        config.load()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: GoConnection(config, self._state, self._limits.connections), host, port, backlog=512
        )
        self._sweeper = asyncio.create_task(self._sweep())
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop accepting, drop all connections as the daemon does, and wait until every handler has ended."""
        if self._listener is not None:
            self._listener.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        tasks = list(self._state.tasks)
        for connection in self._open():
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _open(self) -> Iterator[GoConnection]:
        return (each for each in list(self._state.connections) if isinstance(each, GoConnection))

    async def _sweep(self) -> None:
        """Drop, for ever, connections whose request is not complete after `request_seconds`."""
        while True:
            await asyncio.sleep(self._limits.request_seconds / 4)
            latest = asyncio.get_running_loop().time() - self._limits.request_seconds
            for connection in self._open():
                if connection.began is not None and connection.began < latest:
                    connection.abort()

    async def _serve(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Serve one request, as an ASGI application."""
        if scope["type"] != "http":
            raise EmulatorError(f"the server was asked for {scope['type']!r} and serves HTTP")
        connection: GoConnection = scope["state"]["connection"]
        connection.task = asyncio.current_task()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = HttpRequest(scope["method"], scope["raw_path"].decode("latin-1"), headers)
        await HttpExchange(request, connection, receive, send, self._room).run(self._handle, self._streams)
