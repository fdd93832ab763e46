"""The file that a running server leaves in its home: its process and its addresses."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from batos import private_files
from batos.client.wire.addresses import parse_reachable
from batos.protocol.errors import ConfigError

NAME = "server.json"


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


def write(home: Path, note: ServerRecord) -> None:
    """Leave the note, whole or not at all, for its owner's eyes."""
    private_files.write(home / NAME, json.dumps({"v": 1, **asdict(note)}, indent=2) + "\n")


def remove(home: Path, note: ServerRecord) -> None:
    """Take the note away, if it is still this one."""
    if read(home) == note:
        (home / NAME).unlink(missing_ok=True)


def read(home: Path) -> ServerRecord | None:
    """Read the server's note; None where there is none, or none that can be understood."""
    try:
        found = json.loads(private_files.read(home / NAME))
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
    note = read(home)
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
