"""A command that gets a signal behind the commit by which an erasure is at a stage: SIGNAL STAGE ARGUMENTS."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from tests.waiting import HANG
from ZODB.Connection import Connection

from batos.cli import entry
from batos.concurrency.threads import LongWork
from batos.image import roots
from batos.records import redaction


def main(number: int, stage: str, *arguments: str) -> int:
    """Run a command; at the stage its process gets the signal, and goes on when that has come to the erasure."""
    finish, stop, told = Connection.tpc_finish, LongWork.stop, threading.Event()

    def signal_at_stage(self: Connection, transaction: Any) -> None:
        finish(self, transaction)
        left = redaction.describe_erasure(roots.root_of(self))
        if left is not None and left["stage"] == stage and not told.is_set():
            os.kill(os.getpid(), number)
            told.wait(HANG)

    def note(self: LongWork) -> None:
        stop(self)
        told.set()

    Connection.tpc_finish = signal_at_stage  # type: ignore[method-assign]
    LongWork.stop = note  # type: ignore[method-assign]
    return entry.run(list(arguments))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
