"""A connection to a server: a guarded socket at its address, opened with its handshake, read until it is lost."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from batos.client.addresses import Address
from batos.client.keys import Credentials
from batos.protocol.errors import ConfigError, NoServer, Unauthorised

#: Seconds after which a peer that has not shown who it is is dropped.
_HANDSHAKE = 10.0


def bind_socket(socket: zmq.asyncio.Socket, address: Address, field: str) -> Address:
    """Bind it, at a free port where the address may have one; gives the address with the port that it got.

    ConfigError names the setting `field`.
    """
    socket.handshake_ivl = round(_HANDSHAKE * 1000)
    keep_alive(socket)
    try:
        socket.bind(str(address))
    except zmq.ZMQError as error:
        if error.errno == errno.EADDRINUSE and address.may_be_another:
            return bind_socket(socket, replace(address, port=0, may_be_another=False), field)
        socket.close(linger=0)
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"{field}: another process listens at {address}",
                field=field,
                remedy=f"Stop it, or give another port: batos serve --{field} tcp://{address.host}:PORT "
                f"(0 is a free one), or {field} in batos.toml.",
            ) from error
        raise ConfigError(
            f"{field}: it is not possible to listen at {address}: {error}",
            field=field,
            remedy="Name an address that this machine has, and a port above 1023.",
        ) from error
    return address.at(int(str(socket.getsockopt_string(zmq.LAST_ENDPOINT)).rpartition(":")[2]))


def keep_alive(socket: zmq.asyncio.Socket) -> None:
    """Let the kernel find out within a minute that a peer is gone without a word.

    Not ZeroMQ's own heartbeats: where a peer vanishes while its messages wait to be read, they end the process
    ("Assertion failed: !_io_error", libzmq 4364).
    """
    socket.tcp_keepalive, socket.tcp_keepalive_idle = 1, 30
    socket.tcp_keepalive_intvl, socket.tcp_keepalive_cnt = 10, 3
    socket.setsockopt(zmq.TCP_MAXRT, 60_000)


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
