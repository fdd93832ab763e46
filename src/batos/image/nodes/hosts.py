"""The machine that this process runs on, as an image on a server tells it from others."""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

#: The file of a Linux machine's id; the system asks that nobody is told the id itself.
_ID_FILE: Final = Path("/etc/machine-id")
#: The content of the file during the very first start of a machine.
_NO_ID: Final = ("", "uninitialized")


class HostIdentity(NamedTuple):
    """Names a machine: two are told apart by `id`, and a person knows it by `name`."""

    id: str
    name: str


def this_host(id_file: Path = _ID_FILE, name: str = "") -> HostIdentity:
    """Return this machine: its id is a digest of the system's, where that can be read, else of its name."""
    name, known = name or socket.gethostname(), ""
    with suppress(OSError, UnicodeDecodeError):
        known = id_file.read_text(encoding="ascii").strip()
    whole = f"name {name}" if known in _NO_ID else f"id {known}"
    return HostIdentity(hashlib.sha256(f"batos {whole}".encode()).hexdigest()[:16], name)
