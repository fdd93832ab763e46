"""Authentication by ZAP: who may connect to the server's sockets. The right is checked again at each message."""

from __future__ import annotations

from typing import Any

import structlog
import zmq
import zmq.asyncio
from zmq.utils import z85

from batos.client.addresses import OWN, Address
from batos.client.keys import USERNAME, Keyring, identity

#: Where libzmq asks for every connection, in the sockets' own context.
_ZAP = "inproc://zeromq.zap.01"
#: Requests are for all who have a token or a key; what happens to everybody's missions is for the home alone.
REQUESTS, EVENTS = b"batos", b"batos.events"

_log = structlog.get_logger("batos")


class Gate:
    """Answers libzmq's question for every handshake: PLAIN by the home's token, CURVE by the home's keys.

    Start the gate before a guarded socket is bound: libzmq lets CURVE clients in where nobody answers.
    """

    def __init__(self, context: zmq.asyncio.Context, keyring: Keyring) -> None:
        self._keyring = keyring
        self._admitted: frozenset[str] = frozenset()
        self._seen: object = None
        #: The clients that have come in, and may still be connected.
        self._inside: set[str] = set()
        self._socket = context.socket(zmq.REP)
        self._socket.bind(_ZAP)

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            request = await self._socket.recv_multipart()
            try:
                user = self._user(request)
            except Exception as error:  # whatever is wrong with a question or a key file: nobody comes in by it
                _log.warning("authentication failed", reason=str(error))
                user = None
            if user is None:
                _log.info("client refused", address=request[3].decode("ascii", "replace"))
            else:
                self._inside.add(user)
            status, text = (b"200", b"OK") if user is not None else (b"400", b"unknown token or key")
            await self._socket.send_multipart([request[0], request[1], status, text, (user or "").encode(), b""])

    def close(self) -> None:
        """Stop answering; every later handshake fails or, with CURVE, must not be possible: close the sockets first."""
        self._socket.close(linger=0)

    def guard(self, socket: zmq.Socket[Any], address: Address, domain: bytes) -> str:
        """Let only those in whom its domain is for, before it is bound to this address; gives the mechanism."""
        socket.zap_domain = domain
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        socket.ipv6 = address.host.startswith("[")
        if address.is_loopback:
            socket.plain_server = True
            return "plain"
        pair = self._keyring.server()
        socket.curve_server = True
        socket.curve_publickey, socket.curve_secretkey = pair.public.encode(), pair.secret.encode()
        return "curve"

    def _user(self, request: list[bytes]) -> str | None:
        """Return the name of a client by its token or key; None for one that is not known."""
        mechanism, shown = request[5], request[6:]
        if mechanism == b"PLAIN" and len(shown) == 2:
            known = self._keyring.is_token(shown[1]) and shown[0] == USERNAME.encode()
            return identity("token", shown[1]) if known else None
        if mechanism == b"CURVE" and len(shown) == 1:
            name = self._keyring.owner(shown[0])
            guest_watches = request[2] == EVENTS and name != OWN
            return None if name is None or guest_watches else identity(f"key {name}", z85.encode(shown[0]))
        return None

    def admits(self, user: str) -> bool:
        """Test if a client who came in by this token or key would come in now."""
        return user in self._all()

    def shut_out(self) -> frozenset[str]:
        """Return the clients that have come in and would not come in now; each is returned once."""
        gone = frozenset(self._inside - self._all())
        self._inside -= gone
        return gone

    def _all(self) -> frozenset[str]:
        """Return all that would come in now, by the names that their tokens and keys have here."""
        stamp = self._keyring.stamp()
        if stamp != self._seen:
            self._seen, self._admitted = stamp, self._keyring.identities()
        return self._admitted
