"""A process that works as a server does, and stops at a phase to be killed there; bench/crash.py starts it.

The argument is a JSON object with `home`, `image` and `journal` (their URIs), `url` (of the daemon), `phase` ("" for
none), `skip` (how often the phase is passed before) and `broken` (a build broken on purpose). Lines of stdin are
JSON: {"token", "brief"} submits a mission, {"ask": [missions]} tells their statuses, {"leave": true} ends. Lines
of stdout are `ready`, `ack`, `status` and `at`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ZODB.Connection import Connection

from batos.config import Settings
from batos.events import Events
from batos.image import roots
from batos.image.filestorage import SoundFileStorage, fsync
from batos.image.image import LivingImage, Opening
from batos.image.storage import file_of
from batos.inference.journal import Journal, Record
from batos.protocol.errors import ImageBusy
from batos.uvm import UVM, EffectSeams, Seams, open_uvm

#: Seconds until the image of a killed process is taken over, on a server. A process that gets no processor for so long
#: is taken for dead, and what it had in flight is asked again.
LEASE = 2.0
#: Events at which a phase stands, and the value that makes it this phase.
_EVENTS: Mapping[str, str] = {"mission.accepted": "accept", "txn.commit": "publish", "mission.done": "done"}


class Points:
    """Stops the process at the phase that it is to be killed in."""

    def __init__(self, phase: str, skip: int) -> None:
        self._phase, self._left = phase, skip

    def reach(self, phase: str) -> None:
        """Stop here for good, if this is the phase and it was passed often enough."""
        if phase != self._phase:
            return
        if self._left > 0:
            self._left -= 1
            return
        say({"at": phase})
        time.sleep(600)

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Stop at an event."""
        if event in _EVENTS and (event != "txn.commit" or str(keys["what"]).startswith("m-")):
            self.reach(_EVENTS[event])
        elif event == "mission.routed":
            self.reach("effect:before")
        elif event == "mission.state":
            self.reach(f"state:{keys['state']}")

    async def hold(self, point: str, effect: str) -> None:
        """Stop at a point of an effect's life."""
        self.reach(f"effect:{point}")

    def sync(self, descriptor: int) -> None:
        """Stop in a commit, before what it wrote is on the disk."""
        self.reach("commit")
        fsync(descriptor)


def say(line: Mapping[str, Any]) -> None:
    """Tell the bench something."""
    os.write(1, (json.dumps(line) + "\n").encode())


def write_down(file: Path, event: str, keys: Mapping[str, Any]) -> None:
    """Append an event about a mission to a file, by which the bench tells what led to a call that was paid twice."""
    if "mission" in keys and event in ("mission.status", "mission.state", "mission.retracted"):
        shown = {name: keys[name] for name in ("mission", "status", "attempt", "state", "reason") if keys.get(name)}
        with file.open("a") as lines:
            lines.write(json.dumps({"at": time.monotonic(), "process": os.getpid(), "event": event, **shown}) + "\n")


def break_build(kind: str) -> None:
    """Make this build one that loses missions, or pays twice."""
    if kind == "ack-first":
        accept = LivingImage.accept

        async def hasty(self: LivingImage, brief: Mapping[str, Any], *rest: Any) -> str:
            say({"ack": brief["idempotency_key"], "mission": "m-unknown"})
            await asyncio.sleep(0.05)
            return await accept(self, brief, *rest)

        LivingImage.accept = hasty  # type: ignore[method-assign, assignment]
    elif kind == "journal-late":
        write = Journal.write
        kept: dict[str, list[Record]] = {}

        async def late(self: Journal, record: Record) -> None:
            kept.setdefault(record.mission, []).append(record)
            if len(kept[record.mission]) >= 8:
                for each in kept.pop(record.mission):
                    await write(self, each)

        Journal.write = late  # type: ignore[method-assign]


def hold_commits(opening: Opening, points: Points) -> Opening:
    """Let each commit of the image stop at its phase: in a file before its sync, on a server between its two phases."""
    path = file_of(opening.image)
    if path is not None:
        blobs = str(path.with_name("blobs"))
        return replace(opening, image_factory=lambda: SoundFileStorage(str(path), blob_dir=blobs, sync=points.sync))
    finish = Connection.tpc_finish

    def finish_late(self: Connection, transaction: Any) -> None:
        points.reach("commit")
        finish(self, transaction)

    Connection.tpc_finish = finish_late  # type: ignore[method-assign]
    return opening


async def submit(uvm: UVM, token: str, brief: Mapping[str, Any]) -> None:
    """Submit a mission, and say so once it is durable."""
    mission = await uvm.missions.submit({**brief, "idempotency_key": token, "user": "tester"})
    say({"ack": token, "mission": mission})
    if uvm.readings.mission(mission)["status"] == "queued":
        await uvm.missions.begin(mission)


async def serve(given: Mapping[str, Any]) -> None:
    """Recover what was left, take missions, and work until it is told to leave."""
    points = Points(given["phase"], given["skip"])
    settings = Settings(
        home=Path(given["home"]), image=given["image"], journal=given["journal"], ollama_host=given["url"],
        user="tester", install="never", missions=10, lease=LEASE,
    )  # fmt: skip
    seams = Seams(opening=lambda opening: hold_commits(opening, points), effects=EffectSeams(hold=points.hold))
    async with open_uvm(settings, Events(log=False), seams) as uvm:
        uvm.events.subscribe(partial(write_down, settings.home.parent / "events"))
        await uvm.readiness.genesis()
        uvm.events.subscribe(points.on_event)
        for mission in await uvm.missions.recover():
            await uvm.missions.begin(mission)
        uvm.sharing.take_up()
        with uvm.image.snapshot() as root:
            asked = list(root[roots.AWAITED])
        await uvm.approvals.approve(asked, "tester")
        say({"ready": True})
        await listen(uvm)


def say_yes(uvm: UVM, group: asyncio.TaskGroup, event: str, keys: Mapping[str, Any]) -> None:
    """Say yes to each effect that asks before it happens, as a person does who sits beside it."""
    if event == "approval.asked":
        group.create_task(uvm.approvals.approve([str(keys["approval"])], "tester"))


async def listen(uvm: UVM) -> None:
    """Do what the lines of stdin say."""
    reader = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with asyncio.TaskGroup() as group:
        uvm.events.subscribe(partial(say_yes, uvm, group))
        while line := await reader.readline():
            told = json.loads(line)
            if "token" in told:
                group.create_task(submit(uvm, told["token"], told["brief"]))
            elif "ask" in told:
                with uvm.image.snapshot() as root:
                    say({"status": [roots.mission_record(root, each).status.word for each in told["ask"]]})
            else:
                return


def main() -> int:
    """Run the process."""
    given = json.loads(sys.argv[1])
    break_build(given["broken"])
    try:
        asyncio.run(serve(given))
    except ImageBusy:
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
