"""The keeper of a server's process: it starts the program, and leaves nothing of it once BAT OS ends, killed or not.

`python -I -S keeper.py LIFE COMMAND...`: LIFE is the number of a pipe, whose other end BAT OS holds open. Once that is
closed, or the program has ended by itself, all that the program started is killed, also what left its group: orphans
come to the keeper, as to a system's first process (Linux). The standard streams are the program's own.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Linux: who adopts orphans, and the signal at a parent's death.
_SUBREAPER, _DEATH_SIGNAL = 36, 1
#: Seconds in which a program may end by itself once its input is closed, and then after SIGTERM.
_GRACE: Final = 0.5
_LOOK: Final = 0.05


def control(what: int, value: int) -> None:
    """Set something of this process, where the system has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def start(command: list[str], keeper: int) -> int:
    """Start the program and return its number; it dies with its keeper."""
    program = os.fork()
    if program:
        return program
    os.setsid()  # a signal to its group is none to the keeper
    control(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    try:
        os.execv(command[0], command)  # noqa: S606 - a person was shown the command, and granted it
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def reap(program: int, seconds: float, life: int) -> tuple[bool, bool]:
    """Wait so long, or until the program ends or BAT OS leaves; return if the program is there, and if BAT OS is."""
    end = time.monotonic() + seconds
    watched = [life] if life >= 0 else []
    while True:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) > 0:
                if ended == program:
                    return False, True
        if select.select(watched, [], [], _LOOK)[0]:
            return True, False
        if time.monotonic() >= end:
            return True, True


def children() -> list[int]:
    """Return the numbers of this process's children, adopted ones too."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            if int(place.read_text("latin-1").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(place.parent.name))
    return found


def end_all(program: int) -> None:
    """Kill all children, and those that come to this process by it, until there are none."""
    if sys.platform != "linux":  # nobody is told of orphans there: the program's group is what can be reached
        with suppress(ProcessLookupError):
            os.killpg(program, signal.SIGKILL)
        return
    while True:
        for each in children():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> None:
    """Keep one program until BAT OS leaves it."""
    life, command = int(sys.argv[1]), sys.argv[2:]
    control(_SUBREAPER, 1)
    for each in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(each, lambda *_: None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    program = start(command, os.getpid())
    for stream in (0, 1):
        os.close(stream)
    runs, _ = reap(program, float("inf"), life)
    if runs:
        runs, _ = reap(program, _GRACE, -1)
    if runs:
        os.kill(program, signal.SIGTERM)
        reap(program, _GRACE, -1)
    end_all(program)


if __name__ == "__main__":
    main()
