"""A connection to a server: opened with its handshake awaited, read until it is lost, closed without a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from batos.client.wire.keys import Credentials
from batos.client.wire.listening import keep_alive
from batos.protocol.errors import NoServer, Unauthorised

_FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
_HEEDED = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | _FAILED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED


class _CutOff(Unauthorised):
    """The handshake was broken off: by a server that knows another kind of key, or by one that is just ending."""


#: The errors that may be gone a moment later.
PASSING = (NoServer, _CutOff)


class ServerConnection:
    """A socket that is connected once and never reconnects by itself: its requests would stay unanswered."""

    def __init__(self, context: zmq.asyncio.Context, kind: int, endpoint: str, credentials: Credentials) -> None:
        self.endpoint = endpoint
        self._socket: zmq.asyncio.Socket = context.socket(kind)
        self._socket.reconnect_ivl = -1
        keep_alive(self._socket)
        self._socket.ipv6 = "[" in endpoint
        credentials.apply(self._socket)
        self._monitor: zmq.asyncio.Socket = self._socket.get_monitor_socket(_HEEDED)

    @classmethod
    async def open(
        cls,
        context: zmq.asyncio.Context,
        kind: int,
        endpoint: str,
        credentials: Credentials,
        seconds: float,
        setup: Callable[[zmq.asyncio.Socket], None] = lambda socket: None,
    ) -> ServerConnection:
        """Open a connection. Raises: NoServer: nothing answers. Unauthorised: the server does not know us."""
        connection = cls(context, kind, endpoint, credentials)
        try:
            setup(connection._socket)
            await connection._open(seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _open(self, seconds: float) -> None:
        self._socket.handshake_ivl = round(seconds * 1000) + 1_000
        self._socket.connect(self.endpoint)
        reached = False
        try:
            async with asyncio.timeout(seconds):
                while True:
                    event, value = await self._event()
                    if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                        return
                    if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                        raise Unauthorised(f"the server at {self.endpoint} does not know this client ({value})")
                    if event & _FAILED:
                        raise _CutOff(
                            f"what listens at {self.endpoint} takes no key of this kind, or is no server of BAT OS"
                        )
                    if event in (zmq.EVENT_CLOSED, zmq.EVENT_DISCONNECTED):
                        raise NoServer(f"nothing listens at {self.endpoint}")
                    reached = reached or event == zmq.EVENT_CONNECTED
        except TimeoutError:
            what = "what listens there does not answer as one" if reached else "nothing answers"
            raise NoServer(f"no server at {self.endpoint}: {what} within {seconds:g} s") from None

    async def _event(self) -> tuple[int, int]:
        told = parse_monitor_message(await self._monitor.recv_multipart())
        return int(told["event"]), int(told["value"])

    async def wait_until_lost(self) -> None:
        """Wait until the connection is lost."""
        while (await self._event())[0] != zmq.EVENT_DISCONNECTED:
            pass

    async def receive(self) -> list[bytes]:
        """Wait for the next message."""
        return await self._socket.recv_multipart()

    def rest(self) -> list[list[bytes]]:
        """Return the messages that had come before the connection was lost."""
        found: list[list[bytes]] = []
        with suppress(zmq.ZMQError):
            while True:
                done: Any = self._socket.recv_multipart(zmq.DONTWAIT)
                found.append(done.result())
        return found

    def send(self, data: bytes) -> bool:
        """Hand over a message; return False where the connection has just been lost and its reader does not know yet.

        A server that takes nothing looks the same; a client has far fewer requests under way than would show it.
        """
        done: Any = self._socket.send_multipart([data], zmq.DONTWAIT)
        error = done.exception()
        if error is not None and not isinstance(error, zmq.Again):
            raise error
        return error is None

    @property
    def closed(self) -> bool:
        """Test if the connection was closed here."""
        return bool(self._socket.closed)

    def close(self) -> None:
        """Close it at once; what was not sent is not. A second time is no error."""
        if self.closed:
            return
        # The monitor first: libzmq would wait for ever to tell a listener that is gone.
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=0)
