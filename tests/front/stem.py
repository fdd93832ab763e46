"""A process that has imported all that the verbs need, and becomes `batos` by forking: a second less for each run.

`python stem.py ADDRESS` listens on a Unix socket until its stdin ends. A run is a process of its own, with the streams,
the environment and the folder of `asking.py` that asked for it; only the reading of modules is shared.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

from batos.front import cli

#: What verbs load when they are called, beside their own modules.
ALSO = (
    "batos.front.doors.local",
    "batos.front.verbs.shelving",
    "batos.front.health.residency",
    "batos.front.health.doctor",
    "batos.front.telling.logs",
    "batos.front.telling.mission",
    "zodburi.resolvers",
    "ZODB.FileStorage.FileStorage",
)


def main(address: str) -> None:
    """Serve until stdin ends; every run leaves this function by its own exit."""
    for name in (*dict.fromkeys(module for module, _ in cli.VERBS.values()), *ALSO):
        with suppress(ImportError):  # a module that does not load is told by the runs that need it
            importlib.import_module(name)
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(connection)
        connection.close()


def serve(connection: socket.socket) -> None:
    """Begin the run in a child and tell its exit; kill it when who asked is gone. In the child: be the run."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    (length,) = struct.unpack("!I", head)
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body)) or sys.exit("who asked for a run is gone")
    child = os.fork()
    if child == 0:
        connection.close()
        become(json.loads(body), streams)
    for stream in streams:
        os.close(stream)
    ended = threading.Event()
    threading.Thread(target=follow, args=(connection, child, ended), daemon=True).start()
    _, status = os.waitpid(child, 0)
    ended.set()
    connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def follow(connection: socket.socket, child: int, ended: threading.Event) -> None:
    """Who asks says nothing more: when anything comes it is the end, and the run's too."""
    connection.recv(1)
    if not ended.is_set():
        os.kill(child, signal.SIGKILL)


def become(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run the verb, and exit as a process that was started for it does."""
    for target, given in enumerate(streams):
        os.dup2(given, target)
        os.close(given)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.argv = ["batos", *order["arguments"]]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        buffered = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        setattr(sys, name, io.TextIOWrapper(buffered, old.encoding, old.errors, line_buffering=number == 2))
    random.seed()
    cli.main(order["arguments"])
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
