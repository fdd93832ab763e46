"""Kills a process under load, again and again, and accounts from outside for all that it had accepted.

Half of the kills are at random instants, half at a phase, in turn: at the acceptance, in each state of the machine, in
a commit, before the publication, after it, and at the points of an effect's life. After every fifth kill two processes
start on the same home at once; one has to give way. At the end every accepted mission is accounted for: by the bench's
own ledger of acknowledgements, which is synced before anything else happens, by the emulator's log of paid calls, and
by what the targets of effects have seen. `harm` is the sum of all that went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from batos.care import verification
from batos.config import Settings
from batos.history import record_chain
from batos.image import capabilities
from batos.image.read_only import open_read_only
from batos.image.transactions import snapshot
from batos.uvm import open_uvm
from ollama_emulator.emulator import Emulator, Options
from report import Goal, report

_SIDE = Path(__file__).with_name("crash_side.py")
#: Phases in which the process is killed.
PHASES = (
    "accept", "state:IDLE", "state:DECOMPOSING", "state:DELEGATING", "state:SYNTHESIZING", "state:COMPLETE", "commit",
    "publish", "done", "effect:before", "effect:staged", "effect:begun", "effect:done", "effect:recorded",
)  # fmt: skip
#: Missions in flight, seconds until a random kill at most, that a phase is waited for, and of a call.
IN_FLIGHT, LONGEST, PATIENCE, CALL = 12, 1.5, 6.0, 0.25
#: Every so many kills two processes start at once; seconds until a process has the image.
RIVALS, STARTS = 5, 30.0
#: Seconds before a kill in which a call was in flight: it was answered and not yet in the journal.
SLACK = 0.3
#: Seconds after which a call is seen at the latest.
SEEN = 0.05


@dataclass
class World:
    """What the bench sees from outside: acknowledgements, the kills, and what the targets of effects did."""

    folder: Path
    emulator: Emulator
    url: str
    inbox: str = ""
    #: What was posted, by grant: each request as (key, data); and when processes were killed.
    posted: dict[str, list[tuple[str, Any]]] = field(default_factory=lambda: {"inbox": [], "dark": []})
    kills: list[float] = field(default_factory=list)
    #: Token to mission of what was acknowledged, in the order of the ledger; and what was sent and not acknowledged.
    acked: dict[str, str] = field(default_factory=dict)
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    #: When each paid call was asked: digest of its body to moments.
    calls: dict[str, list[float]] = field(default_factory=dict)
    number: int = 0
    #: Every process that was started: none stays behind.
    children: list[int] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Return the home of the process."""
        return self.folder / "home"

    def acknowledge(self, token: str, mission: str) -> None:
        """Write an acknowledgement to the ledger, and see that it is on the disk."""
        if token not in self.acked:
            with (self.folder / "ledger").open("a") as file:
                file.write(f"{token} {mission}\n")
                file.flush()
                os.fsync(file.fileno())
        self.acked[token] = mission
        self.sent.pop(token, None)

    def next_phase(self) -> str:
        """Return the phase that was reached least often so far, of those that are equal the first."""
        return min(PHASES, key=lambda phase: self.phases[phase] + self.tried[phase] / 10)

    def next_mission(self) -> tuple[str, dict[str, Any]]:
        """Return another mission: questions of all kinds, and effects of each class."""
        self.number += 1
        token = f"t{self.number}"
        kind = ("ask", "notes", "think", "inbox", "ask", "dark", "think", "notes")[self.number % 8]
        if kind in ("ask", "think"):
            effort = "reflex" if kind == "ask" else "cycle"
            return token, {"text": f"What does the keeper do on night {token}?", "effort": effort, "persona": "BRICK"}
        given = ["log.txt", f"line {token}"] if kind == "notes" else [{"n": token}]
        selector = "append_" if kind == "notes" else "post_"
        return token, {"message": {"receiver": kind, "selector": selector, "arguments": given}, "grants": [kind]}


class Process:
    """A process under load, in a process group of its own."""

    def __init__(self, world: World, child: asyncio.subprocess.Process) -> None:
        self._world, self._child = world, child
        self.ready, self.at = asyncio.Event(), asyncio.Event()
        self.statuses: asyncio.Queue[list[str]] = asyncio.Queue()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, world: World, phase: str = "", skip: int = 0, broken: str = "") -> Process:
        """Start a process that stops at a phase."""
        given = {"home": str(world.home), "url": world.url, "phase": phase, "skip": skip, "broken": broken}
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(_SIDE), json.dumps(given), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True, limit=2**20,
        )  # fmt: skip
        world.children.append(child.pid)
        return cls(world, child)

    async def _read(self) -> None:
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            if not line.startswith(b"{"):  # a line of its log
                continue
            told = json.loads(line)
            if "ack" in told:
                self._world.acknowledge(told["ack"], told["mission"])
            elif "at" in told:
                self._world.phases[told["at"]] += 1
                self.at.set()
            elif "status" in told:
                self.statuses.put_nowait(told["status"])
            else:
                self.ready.set()

    def say(self, line: Mapping[str, Any]) -> None:
        """Send the process a line."""
        assert self._child.stdin is not None
        with suppress(OSError, RuntimeError):  # it was killed
            self._child.stdin.write((json.dumps(line) + "\n").encode())

    async def load(self, until: asyncio.Future[Any]) -> None:
        """Keep missions in flight: those that were never acknowledged are sent again, with their keys."""
        for token, brief in list(self._world.sent.items()):
            self.say({"token": token, "brief": brief})
        while not until.done():
            if len(self._world.sent) < 2 and await self.open_missions() < IN_FLIGHT:
                token, brief = self._world.next_mission()
                self._world.sent[token] = brief
                self.say({"token": token, "brief": brief})
            await asyncio.sleep(0.01)

    @property
    def has_begun(self) -> bool:
        """Tell whether it has the image: it is ready, or has stopped at its phase already."""
        return self.ready.is_set() or self.at.is_set()

    async def begun(self, seconds: float) -> None:
        """Wait until it has the image, or has ended."""
        waits = [asyncio.ensure_future(each) for each in (self.ready.wait(), self.at.wait(), self._child.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
        for each in waits:
            each.cancel()

    async def open_missions(self) -> int:
        """Return how many of the newest missions have not ended."""
        newest = [each for each in list(self._world.acked.values())[-40:] if each != "m-unknown"]
        if not newest:
            return 0
        statuses = await self.ask(newest)
        return sum(each not in ("done", "failed", "cancelled", "parked") for each in statuses)

    async def ask(self, missions: Sequence[str]) -> list[str]:
        """Return the statuses of missions."""
        self.say({"ask": list(missions)})
        return await self.statuses.get()

    async def kill(self) -> None:
        """Kill the process group."""
        self._world.kills.append(monotonic())
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        await self._child.wait()
        await self._reading

    async def leave(self) -> int:
        """Let the process end by itself, and return its exit code."""
        self.say({"leave": True})
        return await asyncio.wait_for(self._child.wait(), 60)

    async def gives_way(self) -> bool:
        """Tell whether the process ended because another one has the image."""
        return await asyncio.wait_for(self._child.wait(), 60) == 5


async def one_kill(world: World, number: int, broken: str, dice: random.Random) -> None:
    """Start a process, sometimes two at once, put one under load, and kill it."""
    phase = world.next_phase() if number % 2 else ""
    process = await Process.start(world, phase, dice.randrange(2), broken)
    rival = await Process.start(world, broken=broken) if number % RIVALS == 0 else None
    await process.begun(STARTS)
    if rival is not None and not process.has_begun:  # the rival was faster
        process, rival = rival, process
    if rival is not None and not await rival.gives_way():
        raise RuntimeError("two processes had the image at once")
    until = asyncio.ensure_future(process.at.wait())
    loading = asyncio.ensure_future(process.load(until))
    world.tried[phase] += 1
    await asyncio.wait([until], timeout=PATIENCE if phase else dice.uniform(0, LONGEST))
    await process.kill()
    for task in (until, loading):
        task.cancel()
    await asyncio.gather(until, loading, return_exceptions=True)


async def settle(world: World, broken: str) -> list[str]:
    """Let a last process bring everything to its end, and return the statuses of what was acknowledged."""
    process = await Process.start(world, broken=broken if broken == "journal-late" else "")
    await process.ready.wait()
    missions = [each for each in world.acked.values() if each != "m-unknown"]
    statuses: list[str] = []
    for _ in range(600):
        statuses = await process.ask(missions)
        if all(each in ("done", "failed", "cancelled", "parked") for each in statuses):
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    await process.leave()
    return statuses


def count_paid_twice(world: World) -> int:
    """Count the calls that were asked again although none of them was in flight at a kill."""
    twice = 0
    for moments in world.calls.values():
        for before, again in pairwise(moments):
            in_flight = any(before - SEEN <= kill <= before + CALL + SLACK for kill in world.kills)
            twice += not in_flight and again > before
    return twice


def count_effects(world: World) -> tuple[int, int]:
    """Return how many effects happened more than once, and how many did not happen though nobody is asked."""
    file = world.folder / "notes" / "log.txt"
    lines = Counter(file.read_text().splitlines() if file.exists() else ())
    applied = Counter(json.dumps(data) for _, data in dict(world.posted["inbox"]).items())
    blind = Counter(json.dumps(data) for _, data in world.posted["dark"])
    duplicated = sum(count - 1 for counts in (lines, applied, blind) for count in counts.values())
    with open_read_only(f"file://{world.home}/live_image.fs", "") as faces, faces.root() as root:
        told = {each["mission"]: dict(each) for each in root["effects"].values()}
    lost = 0
    for mission in world.acked.values():
        effect = told.get(mission)
        if effect is None or effect["state"] == "unknown":
            continue
        payload = effect["payload"]
        happened = lines[payload["text"].rstrip("\n")] if "text" in payload else (
            (applied if effect["grant"] == "inbox" else blind)[json.dumps(payload["data"])]
        )  # fmt: skip
        lost += not happened
    return duplicated, lost


def count_faults(home: Path) -> int:
    """Return the faults of the image, and of the chains of records."""
    with open_read_only(f"file://{home}/live_image.fs?blobstorage_dir={home}/blobs", "") as faces:
        found = len(verification.find_faults(faces.image))
        with snapshot(faces.journal) as journal, faces.root() as root:
            found += len(record_chain.read_calls(journal).find_faults())
            found += len(record_chain.read_effects(root).find_faults())
    return found


async def run(kills: int, broken: str, seed: int) -> dict[str, Any]:
    """Kill so often, and account for everything."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="batos-crash-") as folder:
        async with serving(Path(folder)) as world:
            await prepare(world)
            for number in range(kills):
                await one_kill(world, number, broken, dice)
                if number % 10 == 9:
                    print(f"{number + 1} kills, {len(world.acked)} missions accepted", file=sys.stderr)
            statuses = await settle(world, broken)
            duplicated, undone = count_effects(world)
            counts = Counter(statuses)
            known = [each for each in world.acked.values() if each != "m-unknown"]
            missing = len(world.acked) - len(known) if broken == "ack-first" else 0
            lost = len(known) - counts["done"] - counts["parked"] + undone + (missing and count_unknown(world))
            told = {
                "kills": len(world.kills), "accepted": len(world.acked), "lost": lost, "duplicated": duplicated,
                "paid_twice": count_paid_twice(world), "parked": counts["parked"],
                "verify_failures": count_faults(world.home),
            }  # fmt: skip
            harm = sum(told[name] for name in ("lost", "duplicated", "paid_twice", "parked", "verify_failures"))
            calls = sum(map(len, world.calls.values()))
            return {**told, "harm": harm, "calls": calls, "phases": dict(world.phases), "statuses": dict(counts)}


def count_unknown(world: World) -> int:
    """Count acknowledged keys that no mission of the image has."""
    with open_read_only(f"file://{world.home}/live_image.fs", "") as faces, faces.root() as root:
        keys = {key.partition("\0")[2] for key in root["repeats"]}
    return sum(token not in keys for token, mission in world.acked.items() if mission == "m-unknown")


async def prepare(world: World) -> None:
    """Make the home, and grant what missions act by."""
    (world.folder / "notes").mkdir()
    settings = Settings(home=world.home, ollama_host=world.url, user="tester", install="never")
    async with open_uvm(settings) as uvm:
        await uvm.readiness.genesis()
        targets = (("notes", "file", str(world.folder / "notes"), "queryable"),
                   ("inbox", "http", world.inbox, "keyed"), ("dark", "http", world.inbox + "/dark", "blind"))  # fmt: skip

        def change(root: Any) -> None:
            for name, kind, target, sink in targets:
                capabilities.add(root, name, kind, target, sink, ("tester", ""))  # type: ignore[arg-type]

        await uvm.image.writer.apply(change)


class serving:
    """The world with its emulator and the program that takes what is posted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> World:
        self._emulator = Emulator(Options(latency_ms=CALL * 1_000, parallel=64))
        self._context = self._emulator.serving()
        url = await self._context.__aenter__()
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.world = World(self._folder, self._emulator, url, f"http://127.0.0.1:{port}/inbox")
        self._watching = asyncio.ensure_future(self._watch())
        return self.world

    async def __aexit__(self, *error: object) -> None:
        self._watching.cancel()
        for pid in self.world.children:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._server.close()
        await self._context.__aexit__(None, None, None)

    async def _watch(self) -> None:
        """Note each paid call, when it is asked, by a digest of its body."""
        seen = 0
        while True:
            for request in list(self._emulator.requests):
                if request["n"] > seen and request["path"] in ("/api/chat", "/api/generate") and request.get("body"):
                    body = json.dumps({k: v for k, v in request["body"].items() if k != "keep_alive"}, sort_keys=True)
                    asked = self.world.calls.setdefault(hashlib.sha256(body.encode()).hexdigest(), [])
                    if request["body"].get("messages") or request["body"].get("prompt"):
                        asked.append(monotonic())
                seen = max(seen, request["n"])
            await asyncio.sleep(0.005)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one posted effect."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n"))
            }
            data = json.loads(await reader.readexactly(int(fields["content-length"])))
            grant = "dark" if "/dark" in head.split("\r\n")[0] else "inbox"
            self.world.posted[grant].append((fields["idempotency-key"], data))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, account, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=40)
    options.add_argument("--storage", choices=["file"], default="file")
    options.add_argument("--broken", choices=["", "ack-first", "journal-late"], default="", help="a build to be found")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--strict", action="store_true", help="fail where there is harm")
    options.add_argument("--quick", action="store_true", help="a few kills: the shape alone")
    options.add_argument("--json", type=Path, help="write the document there too")
    given = options.parse_args(arguments)
    told = asyncio.run(run(2 if given.quick else given.kills, given.broken, given.seed))
    report(told, [Goal("harm", told["harm"], 0)], given.json)
    return int(given.strict and told["harm"] > 0)


if __name__ == "__main__":
    sys.exit(main())
