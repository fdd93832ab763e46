"""A process for which files may not grow beyond a limit that moves; it runs missions until one fails, over and over.

It prints a JSON object for each limit: where the write was that did not fit, and what was told.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from tests.image.missions import thinking
from tests.image.open_image import say

from batos.image.filestorage import SoundFileStorage
from batos.inference.journal import Record
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, DiskFull
from batos.uvm import UVM

#: What a record of the journal, or a file in the image, is made longer by, so that this one is the longer file.
PADDING = 2_000_000


def limit(size: int) -> None:
    """No file may grow beyond so many bytes; -1 lifts the limit. It is the soft one, so it can be lifted."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if size < 0 else size, resource.RLIM_INFINITY))


@dataclass
class WatchedStorages:
    """The storages of one image: the first transaction that did not fit, by its file and its note."""

    home: Path
    full: list[tuple[str, str]] = field(default_factory=list)
    sound: bool = True

    def factory(self, name: str) -> Callable[[], SoundFileStorage]:
        """Opens one of them."""
        watched = self

        class Storage(SoundFileStorage):
            def tpc_vote(self, transaction: Any) -> Any:
                try:
                    return super().tpc_vote(transaction)
                except DiskFull:
                    watched.full.append((name, transaction.description.decode()))
                    watched.sound &= Path(self._file_name).stat().st_size == self._pos
                    raise

        return lambda: Storage(str(self.home / f"{name}.fs"), blob_dir=str(self.home / "blobs"))


async def pad(uvm: UVM, *, journal: bool) -> None:
    """Make one of the two files the longer."""
    # The journal deflates what it keeps.
    text = os.urandom(PADDING // 2).hex()
    if journal:
        record = Record("pad", "m-pad", "", "", "", {"messages": []}, "done", "then", response={"text": text})
        await uvm.journal.write(record)
    else:
        await uvm.image.writer.apply(lambda root: root.__setitem__("padding", text))


async def until_full(uvm: UVM, at_once: int) -> dict[str, Any]:
    """Ask until a mission fails; what was told of it, and of the next that is to be accepted."""
    told: dict[str, Any] = {"done": [], "errors": []}
    while not told["errors"]:
        await asyncio.gather(*(ask(uvm, told) for _ in range(at_once)))
    try:
        await uvm.missions.submit({"text": "And now?"})
    except BatosError as error:
        told["next"] = error.as_dict()
    return told


async def ask(uvm: UVM, told: dict[str, Any]) -> None:
    """One mission: done, or failed at a stage (accept, run, or publish when its thought is committed)."""
    at = "accept"
    try:
        mission = await uvm.missions.submit({"text": "Why is the sea salt?", "effort": "cycle"})
        at = "run"
        await uvm.missions.run(mission)
        told["done"].append(mission)
    except BatosError as error:
        if at == "run" and "answer" in uvm.readings.mission(mission):
            at = "publish"
        told["errors"].append({**error.as_dict(), "at": at})


async def blob(uvm: UVM) -> dict[str, Any]:
    """A mission with a file that does not fit."""
    data = hashlib.sha256(b"").hexdigest().encode() * 100_000
    try:
        await uvm.missions.submit({"text": "What does this say?"}, [as_file("long.txt", data)])
    except BatosError as error:
        return {"errors": [error.as_dict()], "done": []}
    return {"errors": [], "done": []}


async def one(home: Path, kind: str, slack: int, at_once: int) -> None:
    """Fill up to the limit, close under it, lift it, open again and settle what was left."""
    watched = WatchedStorages(home)
    factories: dict[str, Any] = {
        "image_factory": watched.factory("live_image"),
        "journal_factory": watched.factory("journal"),
    }
    async with thinking(home, **factories) as uvm:
        filled = home / ("journal.fs" if kind == "journal" else "live_image.fs")
        if not (home / "padded").exists():
            await pad(uvm, journal=kind == "journal")
            (home / "padded").touch()
        await uvm.readiness.check()  # what the router learns of the codex is large, and written once
        limit(filled.stat().st_size + slack)
        told = await (blob(uvm) if kind == "blob" else until_full(uvm, at_once))
    limit(-1)
    told |= {"full": watched.full, "sound": watched.sound}
    told["left"] = [path.name for path in (home / "blobs" / "tmp").iterdir()]
    say(json.dumps(told))


async def main(home: Path, kind: str, at_once: int, *slacks: int) -> None:
    """Every limit on the same image."""
    for slack in slacks:
        await one(home, kind, slack, at_once)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for what was told
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])))
