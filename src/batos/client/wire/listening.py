"""Binds a guarded socket to its address; if that fails, the error names a remedy."""

from __future__ import annotations

import errno
from dataclasses import replace

import zmq
import zmq.asyncio

from batos.client.wire.addresses import Address
from batos.protocol.errors import ConfigError

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
