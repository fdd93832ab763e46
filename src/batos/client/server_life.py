"""The life of a home's server: whoever needs one starts it; it is stopped, or closes its image for a while.

All of that is done under the home's lock, so that two who start a server at one instant end with one. The lock is
passed on to the server that is started: it holds the lock until it answers, also where its starter is killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from batos.client import addresses
from batos.client.addresses import ServerRecord
from batos.config import Settings
from batos.home_folder import PACKAGE
from batos.protocol import wire_messages
from batos.protocol.errors import BatosError, ImageBusy, InternalError, NoServer, Refused, TimedOut

LOCK: Final = "server.lock"
LOG: Final = "server.log"
#: The empty folder in which a server that was started works.
FOLDER: Final = "server"
#: The variables that such a server takes from its starter, beside all BATOS_*.
_KEPT: Final = frozenset({"OLLAMA_HOST", "HOME", "LANG", "TZ"})
#: Settings of whoever asks: a server serves askers in whom these differ.
_ASKERS: Final = frozenset({"home", "server", "user", "busy_seconds", "log_level", "log_format"})
#: Seconds until a server must have started, or ended; between two looks; bytes of a log that is begun anew.
_LONGEST, _LOOK, _LOG_BYTES = 120.0, 0.01, 2**20
#: The signal at which a server closes its image and opens it again when the home's lock is free.
LENDS: Final = signal.SIGUSR1


class HomeLock:
    """The lock of a home, held by who starts its server or has its image alone, until that process ends at most."""

    def __init__(self, home: Path, descriptor: int | None = None) -> None:
        """Open the lock, or take over the `descriptor` of one that is held. Raises: OSError: it cannot be made."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(home / LOCK, flags, 0o600) if descriptor is None else descriptor
        os.set_inheritable(self.descriptor, False)

    def take(self) -> bool:
        """Take the lock, if nobody else has it, and return whether it is held here."""
        with suppress(BlockingIOError):
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def owe(self, lender: ServerRecord | None) -> None:
        """Write down which server is to have the lock next, since it lent its image; None takes that away."""
        os.ftruncate(self.descriptor, 0)
        if lender is not None:
            os.pwrite(self.descriptor, f"{lender.pid} {lender.born}".encode(), 0)

    def is_owed(self) -> bool:
        """Test if a server that lent its image, and lives, is to have the lock next."""
        pid, _, born = os.pread(self.descriptor, 99, 0).decode("ascii", "replace").partition(" ")
        return pid.isdecimal() and addresses.birth_time(int(pid)) == born

    def release(self) -> None:
        """Let go of the lock for all that hold it together; it can be taken again."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the lock; it stays with a process to which it was passed on. A second time is no error."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        """Return the lock, which is let go at the end of the block."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """Let go of it."""
        self.close()


def digest(settings: Settings) -> str:
    """Return a digest of the settings that are the server's: one that was started with others is another server."""
    served = settings.model_dump(mode="json", exclude=set(_ASKERS))
    return hashlib.sha256(json.dumps(served, sort_keys=True).encode()).hexdigest()[:16]


def may_start(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Test if a server may be started for these settings.

    None is where the setting `server` says never; in a container or under CI one must be asked for by `auto`, since it
    could outlive what it was started for; an image in memory is its process's own.
    """
    if settings.server not in ("", "auto") or settings.image.startswith("memory:"):
        return False
    contained = bool(environ.get("CI")) or any(Path(each).exists() for each in ("/.dockerenv", "/run/.containerenv"))
    return settings.server == "auto" or not contained


def ensure(home: Path) -> ServerRecord:
    """Return the note of the home's server; one is started where none runs.

    Raises: OSError: the home cannot be written. BatosError: what kept the server from starting.
    """
    until, begun = time.monotonic() + _LONGEST, -1
    lock = HomeLock(home)
    try:
        while time.monotonic() < until:
            held = lock.take()
            if (running := addresses.running_server(home)) is not None:
                return running
            if held and lock.is_owed():
                lock.release()
            elif held:
                if begun >= 0 and (error := _failure(home, begun)) is not None:
                    raise error
                (home / addresses.SERVER_FILE).unlink(missing_ok=True)  # what a server that was killed has left
                begun = _spawn(home, lock.descriptor)
                lock.close()  # the server has it
                lock = HomeLock(home)
            time.sleep(_LOOK)
        raise NoServer(f"no server of {home} answers within {_LONGEST:g} s", remedy=f"See {home / 'logs' / LOG}.")
    finally:
        lock.close()


def _spawn(home: Path, lock: int) -> int:
    """Start a server to which the lock is passed on, and return where its part of the log begins."""
    folder, log = home / FOLDER, home / "logs" / LOG
    for each in (folder, log.parent):
        each.mkdir(mode=0o700, exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("BATOS_")}
    # The code is that of whoever starts it, wherever that was found.
    environ |= {"BATOS_HOME": str(home), "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-P", "-m", "batos", "serve", "--json", "--started", str(lock)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(log, flags, 0o600), "ab") as out:
        if out.tell() > _LOG_BYTES:
            out.truncate(0)
        begun = out.seek(0, os.SEEK_END)
        # The shell ends at once, so that nobody has to wait for the server as for a child.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command], check=True, cwd=folder, env=environ, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, pass_fds=(lock,), start_new_session=True,
        )  # fmt: skip
    return begun


def _failure(home: Path, begun: int) -> BatosError | None:
    """Return what a server that has ended told last; None where it was killed."""
    with (home / "logs" / LOG).open("rb") as log:
        log.seek(begun)
        lines = log.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        with suppress(ValueError, KeyError, TypeError):
            return wire_messages.error_of(json.loads(line)["error"])
    return InternalError(f"the server ended as it started: {lines[-1]}") if lines else None


def stop(home: Path) -> ServerRecord | None:
    """Stop the home's server in order, wait for its end and return its note; None where none runs.

    Raises: Refused: another program has it in its own process. TimedOut: it has not ended in time.
    """
    running = addresses.running_server(home)
    if running is not None:
        if running.by == "program":
            whose = f"the server of {home} belongs to process {running.pid}"
            raise Refused(whose, remedy="End that program.")
        _signal(running, signal.SIGTERM)
        _wait(running, lambda: not _lives(running), "end")
    return running


@contextmanager
def image_alone(home: Path, is_held: Callable[[], bool]) -> Iterator[None]:
    """Let this process have the home's image alone: the home's server closes it, and opens it again at the end.

    `is_held` tests if a process has the image open. Raises: ImageBusy: somebody else starts a server, or has the image
    alone. TimedOut: the server does not close it.
    """
    with HomeLock(home) as lock:
        until = time.monotonic() + _LONGEST
        while not lock.take():
            if time.monotonic() >= until:
                raise ImageBusy(str(home), "another process", remedy="Wait for its end.")
            time.sleep(_LOOK)
        running = addresses.running_server(home)
        if running is not None and running.by != "program":
            _signal(running, LENDS)
            _wait(
                running, lambda: not _lives(running) or (addresses.read_record(home) is None and not is_held()), "close"
            )
            lock.owe(running)
        yield


def _signal(running: ServerRecord, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(running.pid, number)


def _lives(running: ServerRecord) -> bool:
    return addresses.birth_time(running.pid) in ("", running.born)


def _wait(running: ServerRecord, done: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _LONGEST
    while not done():
        if time.monotonic() >= until:
            late = f"the server (process {running.pid}) did not {what} within {_LONGEST:g} s"
            raise TimedOut(late, remedy="Try again; `batos stop` twice stops it at once.")
        time.sleep(_LOOK)
