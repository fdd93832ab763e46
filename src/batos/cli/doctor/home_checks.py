"""The doctor's checks of the home: its folder, permissions, free disk space, the server file and the clock."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote

from batos.client.wire import server_file
from batos.config import Settings
from batos.genesis.integrity import Finding
from batos.terminal.console import size

#: Free space below which a mission may not find room, in bytes.
LEAST_FREE = 256 * 2**20
#: Free space below which no model is pulled or made on the daemon's disk, in bytes.
LEAST_STORE = 2**30
#: By how many seconds a clock may go back between two starts.
SLACK = 60.0

#: The files of a home that hold what people asked and were told.
_OURS = ("*.fs", "*.fs.*", "token", "server.json", "blobs", "logs", "logs/*", "codex", "keys", "keys/*", "uploads*")


def findings(settings: Settings) -> Iterator[Finding]:
    """Check the home's folder, its files, its disk and a server's note; nothing is changed."""
    home = settings.home
    yield disk("disk.home", home, LEAST_FREE, f"where the home is ({home})")
    yield _private(home)
    yield _files(home)
    yield writable(home)
    yield _server(home)


def disk(id_: str, place: Path, least: int, where: str) -> Finding:
    """Measure the free bytes at a place; a place that is not there yet is measured where it will be."""
    folder = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    what = f"{size(free)} free {where}"
    if free < least:
        return Finding(id_, False, what, f"Free space until at least {size(least)} are left.")
    return Finding(id_, True, what)


def store(blob: Path, least: int = LEAST_STORE) -> list[Finding]:
    """Measure the room where the daemon keeps its models, by the path of one; return nothing if that is not here."""
    if not blob.is_absolute() or not blob.exists():
        return []
    return [disk("disk.store", blob, least, f"where Ollama keeps its models ({blob.parent})")]


def clock(last: float, now: float | None = None) -> Finding:
    """Check that the clock is not behind the image's last commit (seconds since 1970): ids and history go by time."""
    ahead = last - (time.time() if now is None else now)
    if ahead > SLACK:
        what = f"the last commit is {ahead:.0f} s in the future: the clock is behind, or was ahead"
        return Finding("clock.sane", False, what, "Set the clock (timedatectl), before more is written.")
    return Finding("clock.sane", True, "the clock is not behind the last commit")


def _private(home: Path) -> Finding:
    mode = home.stat().st_mode & 0o777 if home.exists() else 0o700
    if mode & 0o077:
        return Finding(
            "home.private", False, f"other users may open the home ({mode:o})", f"chmod 700 {quote(str(home))}"
        )
    return Finding("home.private", True, "only its owner may enter the home")


def _files(home: Path) -> Finding:
    open_ = [path for pattern in _OURS for path in sorted(home.glob(pattern)) if _mode(path) & 0o077]
    if open_:
        what = f"other users may read {', '.join(str(path.relative_to(home)) for path in open_[:5])}"
        more = f" and {len(open_) - 5} more" if len(open_) > 5 else ""
        return Finding("home.files", False, f"{what}{more}", f"chmod -R go= {quote(str(home))}")
    return Finding("home.files", True, "only their owner may read the files of the home")


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode & 0o777 if not path.is_symlink() else 0
    except OSError:  # it is gone by now
        return 0


def writable(home: Path, may: Callable[[Path, int], bool] = os.access) -> Finding:
    """Check that the home can be written, or made."""
    place = next(path for path in (home, *home.parents) if path.exists())
    if not may(place, os.W_OK | os.X_OK):
        remedy = f"Give yourself the right to write there: chmod u+wx {quote(str(place))}, or name another home."
        return Finding("home.writable", False, f"{place} cannot be written", remedy)
    return Finding("home.writable", True, "the home can be written")


def _server(home: Path) -> Finding:
    """Check that the process of a server's note still runs."""
    path = home / server_file.NAME
    if not path.exists():
        return Finding("home.server", True, "no server is recorded as running")
    left = server_file.read(home)
    if left is None:
        return Finding("home.server", False, f"{path} cannot be parsed", f"Remove {path}.")
    if server_file.running_server(home) == left:
        return Finding("home.server", True, f"a server runs as process {left.pid}, at {left.bind}")
    return Finding("home.server", False, f"{path} names process {left.pid}, which does not run", f"Remove {path}.")
