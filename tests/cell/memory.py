"""The memory of this process and of its children, as the system counts it."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> dict[int, str]:
    """Processes whose parent is this one, with their names."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text("utf-8", "replace").partition("(")[2].rpartition(")")
        except OSError:  # it ended meanwhile
            continue
        if int(rest.split()[1]) == os.getpid() and rest.split()[0] != "Z":
            found[int(entry.parent.name)] = name
    return found


def resident_mb() -> float:
    """The sum over this process and its children."""
    total = 0
    for pid in (os.getpid(), *children()):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20
