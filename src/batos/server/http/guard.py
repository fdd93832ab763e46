"""The guard of the HTTP door: who may come in, from which page, by which name, with which key."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from zmq.utils import z85

from batos.client.keys import Keyring, identity
from batos.protocol.errors import ProtocolError, Unauthorised
from batos.server.http.http_errors import Forbidden

#: The raw headers of a request.
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

#: The names by which this machine reaches itself.
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
#: The prefix of a path with a key in it, for clients that can send no header.
_KEY_PATH: Final = "/key/"
#: Paths that need no key: they tell nothing but that the server is there.
OPEN: Final = frozenset({"/", "/healthz"})
#: Wrong keys of one address in a minute, after which each answer waits a second; addresses that are remembered.
_WRONG, _MINUTE, _DELAY, _ADDRESSES = 20, 60.0, 1.0, 1_024
#: The headers that a page of a listed origin may send, and those that it may read.
_MAY_SEND: Final = "authorization, content-type, idempotency-key, x-api-key, mcp-protocol-version, mcp-method, mcp-name"
_MAY_READ: Final = "x-batos-mission, x-batos-ignored, retry-after"


class Admission(NamedTuple):
    """A request that may come in: the path without its key, the client as `guests` names it, and headers for a page."""

    path: str
    came_in: str
    cors: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Knock:
    """The part of a request that the guard is shown; `server` is the address at which it arrived."""

    method: str
    path: str
    scheme: str
    headers: Headers
    client: str
    server: str

    def all(self, name: bytes) -> list[str]:
        """Return the values of a header, in the order in which they came."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]

    def first(self, name: bytes) -> str:
        """Return the first value of a header; "" if there is none."""
        return next(iter(self.all(name)), "")


class Guard:
    """Decides whether a request may come in. The order: the host, the page that it comes from, the key."""

    def __init__(self, keyring: Keyring, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._keyring = keyring
        self._hosts = LOOPBACK | {each.lower() for each in hosts}
        self._origins = frozenset(each.rstrip("/").lower() for each in origins)
        self._stamp: object = None
        #: The clients by the digests of the keys that they showed, and all that are known, as long as no key changes.
        self._shown: dict[bytes, str] = {}
        self._admitted: frozenset[str] = frozenset()
        self._persons: frozenset[str] = frozenset()
        self._wrong: dict[str, deque[float]] = {}

    async def admit(self, knock: Knock) -> Admission:
        """Let a request in.

        Raises: ProtocolError: it names no host. Forbidden: its host or its page is not ours. Unauthorised: it shows no
        key that is known.
        """
        self._check_host(knock)
        cors = self._check_page(knock)
        shown, path = _split_key(knock.path)
        if path in OPEN or (knock.method == "OPTIONS" and cors):
            return Admission(path, "", cors)
        came_in = self.identify(shown or _header_key(knock))
        if came_in is None:
            await self._slow_down(knock.client)
            raise Unauthorised(
                "this needs a key" if not (shown or _header_key(knock)) else "this key is not known",
                remedy="Make one with `batos keys new NAME` and send it as `Authorization: Bearer KEY`; for the "
                f"`ollama` command: OLLAMA_HOST={knock.scheme}://{knock.first(b'host') or knock.server}/key/KEY",
            )
        return Admission(path, came_in, cors)

    def _check_host(self, knock: Knock) -> None:
        """Refuse a host that is not ours, which is how a foreign page reaches a server by a name of its own."""
        hosts = knock.all(b"host")
        if len(hosts) != 1 or not hosts[0]:
            raise ProtocolError("a request names exactly one host", field="host", remedy="Send one Host header.")
        name = _host_name(hosts[0])
        if name not in self._hosts and name != knock.server:
            raise Forbidden(
                f"{name[:80]!r} is not a name of this server", field="host",
                remedy="Use its address, or list the name in `http_hosts` of batos.toml.",
            )  # fmt: skip

    def _check_page(self, knock: Knock) -> tuple[tuple[str, str], ...]:
        """Refuse what comes from a foreign page; return the headers that a page of a listed origin needs."""
        origins = knock.all(b"origin")
        listed = bool(origins) and origins[0].lower() in self._origins
        own = f"{knock.scheme}://{knock.first(b'host')}".lower()
        foreign = len(origins) > 1 or (bool(origins) and not listed and origins[0].lower() != own)
        crossing = knock.first(b"sec-fetch-site") == "cross-site" and knock.method not in {"GET", "HEAD", "OPTIONS"}
        if foreign or (crossing and not listed):
            raise Forbidden(
                "this comes from a page of another origin", field="origin",
                remedy="List the origin in `http_origins` of batos.toml, if the page is yours.",
            )  # fmt: skip
        if not listed:
            return ()
        return (
            ("access-control-allow-origin", origins[0]), ("vary", "Origin"),
            ("access-control-allow-headers", _MAY_SEND), ("access-control-allow-methods", "GET, POST, HEAD"),
            ("access-control-expose-headers", _MAY_READ),
        )  # fmt: skip

    def identify(self, key: str) -> str | None:
        """Return the client of a key, as `guests` names it: `token ...` is the home; None if it is nobody's."""
        if not key:
            return None
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        self._refresh()
        known = self._shown.get(digest)
        if known is None and (found := self._find(key)) is not None:
            known = self._shown[digest] = found
        return known

    def admits(self, came_in: str) -> bool:
        """Test if a client that came in would come in now."""
        self._refresh()
        return came_in in self._admitted

    def is_person(self, came_in: str) -> bool:
        """Test if a person types what a client sends, by its key."""
        self._refresh()
        return came_in in self._persons

    def _refresh(self) -> None:
        """Read the keys again if one may have changed."""
        stamp = self._keyring.stamp()
        if stamp != self._stamp:
            self._stamp, self._shown, self._admitted = stamp, {}, self._keyring.identities()
            self._persons = self._keyring.persons()

    def _find(self, key: str) -> str | None:
        if self._keyring.is_token(key.encode("utf-8", "surrogateescape")):
            return identity("token", self._keyring.token().encode())
        public = self._keyring.public_of_http_key(key)
        name = None if public is None else self._keyring.owner(public)
        return None if public is None or name is None else identity(f"key {name}", z85.encode(public))

    async def _slow_down(self, address: str) -> None:
        """Wait, where many wrong keys came from an address within the last minute."""
        now = asyncio.get_running_loop().time()
        if len(self._wrong) > _ADDRESSES:
            self._wrong.clear()
        times = self._wrong.setdefault(address, deque(maxlen=_WRONG))
        is_many = len(times) == _WRONG and now - times[0] < _MINUTE
        times.append(now)
        if is_many:
            await asyncio.sleep(_DELAY)


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> _host_name("LocalHost:7719"), _host_name("[::1]:7719"), _host_name("127.0.0.1.evil.example")
    ('localhost', '[::1]', '127.0.0.1.evil.example')
    """
    host = host.lower()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _split_key(path: str) -> tuple[str, str]:
    """Return the key in a path, and the path without it.

    >>> _split_key("/key/abc/v1/models"), _split_key("/key/abc"), _split_key("/v1/models")
    (('abc', '/v1/models'), ('abc', '/'), ('', '/v1/models'))
    """
    if not path.startswith(_KEY_PATH):
        return "", path
    key, _, rest = path.removeprefix(_KEY_PATH).partition("/")
    return key, f"/{rest}"


def _header_key(knock: Knock) -> str:
    """Return the key that a request's headers show; "" if they show none."""
    kind, _, key = knock.first(b"authorization").partition(" ")
    return key.strip() if kind.lower() == "bearer" else knock.first(b"x-api-key").strip()


def read_headers(headers: Headers) -> Mapping[str, str]:
    """Return a request's headers by name, the first value of each."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found
