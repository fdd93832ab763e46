"""The keys of a home's server, and a server's address with the credentials for it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zmq
from zmq.utils import z85

from batos import home_folder
from batos.client import addresses
from batos.client.addresses import OWN, parse_reachable
from batos.protocol.errors import ConfigError, NoServer, NotFound, UsageError

#: The user of PLAIN: there is one token, and it is the password.
USERNAME = "batos"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_Z85 = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A CURVE key pair, each half as 40 characters of Z85."""

    public: str
    secret: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """The proof of a client: the token, or a pair of keys and the key that the server has to prove."""

    token: str = ""
    pair: KeyPair | None = None
    server: str = ""

    def apply(self, socket: zmq.Socket[Any]) -> None:
        """Set a socket up to show them."""
        if self.pair is None:
            socket.plain_username = USERNAME.encode()
            socket.plain_password = self.token.encode()
        else:
            socket.curve_serverkey = self.server.encode()
            socket.curve_publickey = self.pair.public.encode()
            socket.curve_secretkey = self.pair.secret.encode()


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The file of a client elsewhere: where the server is, its public key, the client's own pair."""

    name: str
    endpoint: str
    server: str
    public: str
    secret: str

    @property
    def credentials(self) -> Credentials:
        """Return the credentials of the client."""
        return Credentials(pair=KeyPair(self.public, self.secret), server=self.server)

    @property
    def http_key(self) -> str:
        """Return the key by which the client comes in over HTTP: the secret half, in letters that an address may have.

        Nothing is kept of it at the server, which knows the client by the public half.
        """
        return base64.urlsafe_b64encode(z85.decode(self.secret)).decode().rstrip("=")

    def text(self) -> str:
        """Write the file as text."""
        return json.dumps({"batos": "key", "v": 1, **asdict(self), "http": self.http_key}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client that has a key, and when it was made; `person`: what comes by it was typed by a person."""

    name: str
    public: str
    made: str
    person: bool = False


class Keyring:
    """The token and keys of a home; what is missing is made when it is first asked for. Files are read as they are now.

    token              the token
    keys/server.json   the server's pair
    keys/home.json     the pair of this home's own clients
    keys/clients/      the public key of every other client, a file each
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / "keys"
        self._clients = self._folder / "clients"

    # -- the token

    def token(self) -> str:
        """Return the token; make one if there is none."""
        path = self._home / "token"
        if not path.exists():
            home_folder.write(path, _new_token(), new=True)  # another process may be quicker: then its is the token
        found = _text(path)
        if not found and path.stat().st_size:
            raise ConfigError(f"{path} holds no token", field="token", remedy=f"Remove {path}: a new one is made.")
        return found or self.renew_token()

    def renew_token(self) -> str:
        """Replace the token and return the new one."""
        home_folder.write(self._home / "token", _new_token())
        return self.token()

    def is_token(self, given: bytes) -> bool:
        """Test if a text is the token, in a time that does not tell how near it came."""
        return hmac.compare_digest(given, self.token().encode())

    def stamp(self) -> object:
        """Return a value that differs whenever the token or a key may have changed."""
        return tuple(_change_time(path) for path in (self._home / "token", self._folder, self._clients))

    # -- keys

    def server(self) -> KeyPair:
        """Return the server's pair."""
        return self._pair("server")

    def own(self) -> KeyPair:
        """Return the pair of this home's own clients."""
        return self._pair(OWN)

    def _pair(self, name: str) -> KeyPair:
        path = self._folder / f"{name}.json"
        if not path.exists():
            for folder in (self._folder, self._clients):  # mkdir gives its mode to the last folder only
                folder.mkdir(mode=0o700, exist_ok=True)
            home_folder.write(path, json.dumps(asdict(_make_pair())) + "\n", new=True)
        try:
            found = json.loads(home_folder.read(path))
            pair = KeyPair(str(found["public"]), str(found["secret"]))
            if zmq.curve_public(pair.secret.encode()).decode() != pair.public:
                raise ValueError("its halves do not belong together")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path} holds no key: {error}", field="keys", remedy=f"Remove {path}: a new one is made."
            ) from error
        return pair

    def clients(self) -> list[ClientKey]:
        """List the clients that have a key, by name; not this home itself."""
        return sorted(self._read(), key=lambda client: client.name)

    def _read(self) -> Iterator[ClientKey]:
        for path in self._clients.glob("*.json") if self._clients.is_dir() else ():
            try:
                found = json.loads(home_folder.read(path))
                yield ClientKey(path.stem, str(found["public"]), str(found["made"]), found.get("person") is True)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # no key, or revoked just now: nobody comes in by it

    def new(self, name: str, endpoint: str, *, person: bool = False) -> KeyFile:
        """Make a client's key; its secret half is only in what is given back. UsageError: a name that cannot be."""
        if not _NAME.fullmatch(name) or name == OWN:
            raise UsageError(
                f"a key cannot be called {name[:80]!r}", field="name", remedy="Use letters, digits, dots and dashes."
            )
        server, pair = self.server(), _make_pair()
        made = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        text = json.dumps({"public": pair.public, "made": made, **({"person": True} if person else {})}) + "\n"
        if not home_folder.write(self._clients / f"{name}.json", text, new=True):
            raise UsageError(
                f"there is a key {name!r} already", field="name", remedy=f"Revoke it first: batos keys revoke {name}"
            )
        return KeyFile(name, endpoint, server.public, pair.public, pair.secret)

    def revoke(self, name: str) -> None:
        """Revoke a key: nobody comes in by it from now on. Raises: NotFound: there is no such key."""
        path = self._clients / f"{name}.json"
        if not _NAME.fullmatch(name) or not path.is_file():
            raise NotFound(f"there is no key {name[:80]!r}", field="name", remedy="`batos keys` lists them.")
        path.unlink()

    def public_of_http_key(self, key: str) -> bytes | None:
        """Return the public half (32 bytes) of what a client shows over HTTP; None if it is no key."""
        try:
            secret = base64.b64decode(f"{key}=".encode(), b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError):
            return None
        return z85.decode(zmq.curve_public(z85.encode(secret))) if len(secret) == 32 else None

    def identities(self) -> frozenset[str]:
        """Return all that would come in now, by the names that `identity` gives their tokens and keys."""
        keys = [*((key.name, key.public) for key in self.clients()), (OWN, self.own().public)]
        named = (identity(f"key {name}", public.encode()) for name, public in keys)
        return frozenset({identity("token", self.token().encode()), *named})

    def persons(self) -> frozenset[str]:
        """Return the clients at which a person types, by the names that `identity` gives their keys."""
        return frozenset(identity(f"key {key.name}", key.public.encode()) for key in self._read() if key.person)

    def owner(self, public: bytes) -> str | None:
        """Find the client of a public key (32 bytes); None: it is nobody's."""
        given = z85.encode(public)
        found = None
        own = ClientKey(OWN, self.own().public, "")
        for client in (own, *self._read()):  # every one, in the same time whichever it is
            if hmac.compare_digest(client.public.encode(), given):
                found = client.name
        return found


def identity(kind: str, secret: bytes) -> str:
    """Name a token or key in a way that does not give it away; a renewed one has another name."""
    return f"{kind} {hashlib.sha256(secret).hexdigest()[:16]}"


def _new_token() -> str:
    return f"{secrets.token_urlsafe(32)}\n"


def _make_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def _change_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # it is not there yet, or no more
        return 0


def _text(path: Path) -> str:
    try:
        found = home_folder.read(path).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return found if found.isprintable() and len(found) <= 255 else ""


def read_key_file(path: Path) -> KeyFile:
    """Read a client's key file. Raises: ConfigError: it is none."""
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict) or found.pop("batos", None) != "key" or found.pop("v", None) != 1:
            raise ValueError("it was not made by `batos keys new`")
        found.pop("http", None)  # it follows from the secret half
        file = KeyFile(**found)
        for key in (file.server, file.public, file.secret):
            if not _Z85.fullmatch(key):
                raise ValueError("a key in it is none")
        return file
    except (OSError, ValueError, TypeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"server: {path} is no key file: {why}",
            field="server",
            remedy="Give an address, or the file that `batos keys new NAME` made on the server's machine.",
        ) from error


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's two addresses and what is shown there; `events` is empty where it is not known.

    `watching` is None for a guest: what happens to everybody's missions is told to the home alone.
    """

    endpoint: str
    events: str
    credentials: Credentials
    watching: Credentials | None


def home_address(home: Path) -> ServerAddress:
    """Return the address of the home's own server. Raises: NoServer: none runs."""
    running = addresses.running_server(home)
    if running is None:
        raise NoServer(f"no server runs for the home {home}")
    ring = Keyring(home)
    by = {
        "plain": lambda: Credentials(token=ring.token()),
        "curve": lambda: Credentials(pair=ring.own(), server=ring.server().public),
    }
    return ServerAddress(running.bind, running.events, by[running.bind_by](), by[running.events_by]())


def setting_address(server: str, home: Path) -> ServerAddress:
    """Return the address that the setting `server` names: tcp://HOST:PORT on this machine, or a key file.

    Raises: ConfigError: the setting is neither.
    """
    if not server.startswith("tcp://"):
        file = read_key_file(Path(server).expanduser())
        return ServerAddress(str(parse_reachable(file.endpoint, "server")), "", file.credentials, None)
    address = parse_reachable(server, "server")
    if not address.is_loopback:
        raise ConfigError(
            f"server: {server} is on another machine, where the home's token may not go",
            field="server",
            remedy="Run `batos keys new NAME` there, and name the file that it makes here.",
        )
    token = Credentials(token=Keyring(home).token())
    return ServerAddress(str(address), "", token, token)
