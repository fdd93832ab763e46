"""The address of a client's server with the credentials for it, found by a home, an address or a key file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from batos.client.wire import server_file
from batos.client.wire.addresses import parse_reachable
from batos.client.wire.keys import Credentials, Keyring, read_key_file
from batos.protocol.errors import ConfigError, NoServer


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
    running = server_file.running_server(home)
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
