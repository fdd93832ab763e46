"""The addresses at which a server listens and is reached, and the file in which it leaves them."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from batos import home_folder
from batos.protocol.errors import ConfigError

_ADDRESS = re.compile(r"tcp://(\[[^\]]*\]|[^:\[\]/]+):(\*|[0-9]{1,5})")
_ASKED = "tcp://ADDRESS:PORT, as tcp://127.0.0.1:7717"
_EVERYWHERE = {"*": "0.0.0.0"}  # noqa: S104 - what a person may write; it is refused without keys


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address in the form that ZeroMQ takes. `port` 0: any that is free."""

    host: str
    port: int
    #: Only this machine can reach it.
    is_loopback: bool
    #: The host stands for every address of the machine: it can be bound to, not connected to.
    is_wildcard: bool = False
    #: Another port does where this one is taken: nobody has asked for this one.
    may_be_another: bool = False

    def __str__(self) -> str:
        return f"tcp://{self.host}:{self.port or '*'}"

    def at(self, port: int) -> Address:
        """Return the same address with the port that it got."""
        return Address(self.host, port, self.is_loopback, self.is_wildcard)

    @property
    def near(self) -> str:
        """Return the endpoint by which this machine itself reaches the address."""
        own = "[::1]" if self.host.startswith("[") else "127.0.0.1"
        return f"tcp://{own if self.is_wildcard else self.host}:{self.port}"


def parse_listening(text: str, field: str) -> Address:
    """Read an address to listen at: an IP address of this machine, `localhost` or `*`.

    Raises: ConfigError: it is none of these; the error names `field`.

    >>> str(parse_listening("tcp://localhost:7717", "bind")), parse_listening("tcp://[::1]:7717", "bind").loopback
    ('tcp://127.0.0.1:7717', True)
    """
    host, port = _parts(text, field)
    if host == "localhost":
        return Address("127.0.0.1", port, is_loopback=True)
    host = _EVERYWHERE.get(host, host)
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        raise _wrong(text, field, "a server listens at an IP address of its machine, not at a name") from None
    return _address(address, text, field, port)


def parse_reachable(text: str, field: str) -> Address:
    """Read a server's address, an IP address or a name. Raises: ConfigError: it is neither; the error names `field`."""
    host, port = _parts(text, field)
    if not port:
        raise _wrong(text, field, "a server is reached at one port")
    if host == "localhost":
        return Address("127.0.0.1", port, is_loopback=True)
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if host.startswith("[") or not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?", host):
            raise _wrong(text, field, "that is not an address") from None
        return Address(host, port, is_loopback=False)
    if address.is_unspecified:
        raise _wrong(text, field, "that means every address, and cannot be connected to")
    return _address(address, text, field, port)


def _address(address: ipaddress.IPv4Address | ipaddress.IPv6Address, text: str, field: str, port: int) -> Address:
    if getattr(address, "scope_id", None) is not None:
        raise _wrong(text, field, "an address with a zone is not accepted")
    host = f"[{address}]" if address.version == 6 else str(address)
    return Address(host, port, address.is_loopback, address.is_unspecified)


def _parts(text: str, field: str) -> tuple[str, int]:
    if text.startswith(("ipc:", "inproc:")):
        raise _wrong(text, field, "a server uses TCP only")
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise _wrong(text, field, "that is not an address")
    port = 0 if found[2] == "*" else int(found[2])
    if port > 65_535:
        raise _wrong(text, field, "no port is larger than 65535")
    return found[1], port


def _wrong(text: str, field: str, why: str) -> ConfigError:
    return ConfigError(f"{field} cannot be {text[:200]!r}: {why}", field=field, remedy=f"Give it as {_ASKED}.")


#: The client that a home itself is.
OWN: Final = "home"


SERVER_FILE = "server.json"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A server: its process, when that was born (a reused number is told apart by it) and where it is reached."""

    pid: int
    born: str
    started: str
    #: Where this machine reaches it: requests, events.
    bind: str
    events: str
    #: The guard of each: `plain` (the home's token) or `curve` (a key).
    bind_by: str
    events_by: str
    batos: str
    #: The starter: a `person`, a `verb` that needed a server, or a `program` that has it in its own process.
    by: str = "program"
    #: The digest of its settings.
    settings: str = ""
    #: Where HTTP is served, as `http://127.0.0.1:7719`; empty: nowhere.
    http: str = ""


def write_record(home: Path, note: ServerRecord) -> None:
    """Leave the note, whole or not at all, for its owner's eyes."""
    home_folder.write(home / SERVER_FILE, json.dumps({"v": 1, **asdict(note)}, indent=2) + "\n")


def remove_record(home: Path, note: ServerRecord) -> None:
    """Take the note away, if it is still this one."""
    if read_record(home) == note:
        (home / SERVER_FILE).unlink(missing_ok=True)


def read_record(home: Path) -> ServerRecord | None:
    """Read the server's note; None where there is none, or none that can be understood."""
    try:
        found = json.loads(home_folder.read(home / SERVER_FILE))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    found.pop("v", None)
    with suppress(TypeError):
        note = ServerRecord(**found)
        if _sound(note):
            return note
    return None


def _sound(note: ServerRecord) -> bool:
    kinds: dict[str, object] = {"pid": int}
    if not all(type(value) is kinds.get(name, str) for name, value in asdict(note).items()):
        return False
    return _guarded(note.bind, note.bind_by) and _guarded(note.events, note.events_by)


def _guarded(address: str, by: str) -> bool:
    """Test if a server guards such an address so: the token goes to no other machine."""
    try:
        return by == "curve" or (by == "plain" and parse_reachable(address, "server").is_loopback)
    except ConfigError:
        return False


def running_server(home: Path) -> ServerRecord | None:
    """Return the note of the home's server, if it runs; one that an ended process left is ignored."""
    note = read_record(home)
    if note is None:
        return None
    now = birth_time(note.pid)
    if now is None or note.born not in ("", now):
        return None
    return note


def birth_time(pid: int) -> str | None:
    """Return when a process was born, by the kernel's count ("": it does not tell); None: there is no process."""
    if pid <= 0:
        return None
    with suppress(OSError, ValueError, IndexError):
        # The fields after the program's name, which may hold any sign; the 22nd of all is the start.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except PermissionError:  # it runs, as somebody else
        return ""
    except (ProcessLookupError, OverflowError):
        return None
    return ""
