"""The world of the crash bench, seen from outside: processes under load, a daemon, and the targets of effects."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from ollama_emulator.emulator import Emulator, Options

_SIDE = Path(__file__).with_name("crash_side.py")
#: Phases in which the process is killed.
PHASES = (
    "accept", "state:IDLE", "state:DECOMPOSING", "state:DELEGATING", "state:SYNTHESIZING", "state:COMPLETE", "commit",
    "publish", "done", "effect:before", "effect:staged", "effect:begun", "effect:done", "effect:recorded",
)  # fmt: skip
_TOKEN = re.compile(r"\bt\d+\b")
#: Missions in flight, and the seconds of a call.
IN_FLIGHT, CALL = 12, 0.25


@dataclass
class World:
    """Holds what the bench sees from outside: acknowledgements, the kills, and what the targets of effects did."""

    folder: Path
    emulator: Emulator
    url: str
    image: str
    journal: str
    inbox: str = ""
    #: The posts, by grant: each request as (key, data); and when processes were killed.
    posted: dict[str, list[tuple[str, Any]]] = field(default_factory=lambda: {"inbox": [], "dark": []})
    kills: list[float] = field(default_factory=list)
    #: Token to mission of what was acknowledged, in the order of the ledger; and what was sent and not acknowledged.
    acked: dict[str, str] = field(default_factory=dict)
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    #: When each paid call was asked: digest of its body to moments.
    calls: dict[str, list[float]] = field(default_factory=dict)
    #: The token in each of these bodies.
    askers: dict[str, str] = field(default_factory=dict)
    number: int = 0
    #: Every process that was started: none stays behind.
    children: list[int] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Return the home of the process."""
        return self.folder / "home"

    def slow_down(self) -> None:
        """Let each answer of a model take `CALL` from now on, and nothing else."""
        slow = {"match": {"path": "/api/chat"}, "do": "stall", "seconds": CALL, "times": 10**6}
        self.emulator.faults.add(slow)

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
        given = {
            "home": str(world.home), "image": world.image, "journal": world.journal, "url": world.url, "phase": phase,
            "skip": skip, "broken": broken,
        }  # fmt: skip
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
            await asyncio.sleep(0.02)

    @property
    def has_begun(self) -> bool:
        """Test if it has the image: it is ready, or has stopped at its phase already."""
        return self.ready.is_set() or self.at.is_set()

    async def wait_until_begun(self, seconds: float) -> None:
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
        if self._child.returncode is not None:
            print(f"a process had ended by itself: {self._child.returncode}", file=sys.stderr)
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        await self._child.wait()
        await self._reading

    async def leave(self) -> int:
        """Let the process end by itself, and return its exit code."""
        self.say({"leave": True})
        return await asyncio.wait_for(self._child.wait(), 60)

    async def gives_way(self) -> bool:
        """Test if the process ended because another one has the image."""
        return await asyncio.wait_for(self._child.wait(), 60) == 5


class Serving:
    """The world with its emulator and the program that takes what is posted."""

    def __init__(self, folder: Path, image: str, journal: str) -> None:
        self._folder, self._image, self._journal = folder, image, journal

    async def __aenter__(self) -> World:
        self._emulator = Emulator(Options(parallel=64))
        self._context = self._emulator.serving()
        url = await self._context.__aenter__()
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        target = f"http://127.0.0.1:{port}/inbox"
        self.world = World(self._folder, self._emulator, url, self._image, self._journal, target)
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
                    digest = hashlib.sha256(body.encode()).hexdigest()
                    asked = self.world.calls.setdefault(digest, [])
                    self.world.askers.setdefault(digest, "".join(_TOKEN.findall(body)[-1:]))
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
