"""Binding a guarded socket to its address, with what to do where that cannot be."""

from __future__ import annotations

import errno

import zmq
import zmq.asyncio

from batos.errors import ConfigError
from batos.front.addresses import Address

#: Seconds after which a peer that has not shown who it is is dropped, and between the network's own signs of life.
_HANDSHAKE, _SIGN, _SILENCE = 10.0, 10.0, 30.0


def bound(socket: zmq.asyncio.Socket, address: Address, field: str) -> Address:
    """Bind it; gives the address with the port that it got. ConfigError names the setting `field`."""
    socket.handshake_ivl = round(_HANDSHAKE * 1000)
    socket.heartbeat_ivl = round(_SIGN * 1000)
    socket.heartbeat_timeout = round(_SILENCE * 1000)
    try:
        socket.bind(str(address))
    except zmq.ZMQError as error:
        socket.close(linger=0)
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"{field}: another process listens at {address}",
                field=field,
                remedy=f"Stop it, or give another port: batos serve --{field} tcp://{address.host}:PORT",
            ) from error
        raise ConfigError(
            f"{field}: it is not possible to listen at {address}: {error}",
            field=field,
            remedy="Name an address that this machine has, and a port above 1023.",
        ) from error
    return address.at(int(str(socket.getsockopt_string(zmq.LAST_ENDPOINT)).rpartition(":")[2]))
