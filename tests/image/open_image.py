"""A Living Image open for a test, missions to accept, everything it holds as bytes, and processes to be killed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fork_server import ForkedCommand
from tests.waiting import HANG

import batos
from batos.events import Events
from batos.image.evolving import Upgrading
from batos.image.image import LivingImage, Opening
from batos.image.transactions import MissionTransaction
from batos.missions.commits import VOTERS
from batos.objects.method import Method
from batos.objects.prototype import UvmObject

#: What the voters ask of every thought.
PROVENANCE = {"journal": [], "models": {}, "methods": [], "recalled": [], "read_at": "tid:0x0"}


def uri_of(home: Path) -> str:
    """A file with blobs."""
    return f"file://{home / 'live_image.fs'}?blobstorage_dir={home / 'blobs'}"


@asynccontextmanager
async def open_image(home: Path | None, **also: Any) -> AsyncIterator[LivingImage]:
    """An image in files in `home`, or in memory."""
    uri = "memory://image" if home is None else uri_of(home)
    opening = Opening(**{"image": uri, "journal": "", "events": Events(log=False), "voters": VOTERS, **also})
    image = await asyncio.to_thread(LivingImage, opening)
    try:
        await image.prepare()
        yield image
    finally:
        await asyncio.to_thread(image.close)


def upgrading(batch: int = 500) -> Upgrading:
    """An upgrade without a backup, at one moment."""
    return Upgrading(tell=lambda what: None, clock=lambda: datetime(2027, 1, 1, tzinfo=UTC), batch=batch)


def brief(text: str = "Why is the sea salt?") -> dict[str, Any]:
    """A brief as a door hands it in."""
    return {"text": text, "user": "tester", "attachments": []}


def answer(thought: UvmObject, text: str = "Rivers carry it there.") -> UvmObject:
    """Give a thought what every committed one has."""
    thought.answer = text
    thought.provenance = dict(PROVENANCE)
    thought.trust, thought.lineage_trust = "model", "model"
    thought.contributions = []
    return thought


def passed(selector: str, source: str) -> Method:
    """Make a method as one that the guardian has passed, whatever is in it: a record is written of no other."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    return Method(selector, source, verdict={"accepted": True, "digest": digest})


def thought_in(image: LivingImage, transaction: MissionTransaction, mission: str) -> UvmObject:
    """The mission's own thought in its own transaction."""
    return image.find(transaction.root, mission)[2]


def dump(image: LivingImage) -> dict[bytes, bytes]:
    """Every object's current record by its oid."""
    return {record.oid: record.data for each in image.db.storage.iterator() for record in each}


def say(*words: object) -> None:
    """A line to the process that started this one, at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@contextmanager
def child(script: str | Path, *arguments: object) -> Iterator[ForkedCommand]:
    """A process that runs a script, by its name one of this folder; its stderr is ours. It is dead afterwards."""
    path = Path(__file__).parent / script
    with ForkedCommand([*map(str, arguments)], os.environ, None, None, 2, script=path) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def interpreter(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The same in an interpreter of its own: its command line, which others may look at, names the script."""
    source, tests = Path(batos.__file__).parents[1], Path(__file__).parents[2]
    command = [sys.executable, str(Path(__file__).parent / script), *map(str, arguments)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(tests), os.environ.get("PYTHONPATH", "")])}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


async def heard(process: ForkedCommand | subprocess.Popen[str]) -> str:
    """The next line that a process says. Raises AssertionError, with its exit code, where it ended instead.

    What it wrote to its stderr stands in the report of the test.
    """
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    assert line, f"the process said no more and ended with {await asyncio.to_thread(process.wait, HANG)}"
    return line.strip()
