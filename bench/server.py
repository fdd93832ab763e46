"""Load that the server withstands: submits by many clients at once, slow and vanishing ones among them, none lost.

`batos serve` runs as a process over a null daemon, whose answers are fixed and come at once, so that what is measured
is ours. Good clients submit and wait for the acknowledgement (`p50_ms`, `p99_ms`: until it comes, which is after the
commit) and then for the end. Slow ones follow what they asked for and do not read; vanishing ones submit over a bare
socket and are gone. Whatever was acknowledged, or is in the server's list at the end, was accepted; at the end the
server is asked for every one of them: one without an end is lost. `busy` counts refusals, each of which is tried again.

With `--door http` the clients are those of OpenAI's wire. Each request has a key of idempotency and is repeated until
it is answered; some clients leave before, and come back; the server is killed in the middle and started anew. `twice`
counts the missions beyond one for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import zmq
import zmq.asyncio

from batos.client import addresses, keys
from batos.client.clients import AsyncClient
from batos.config import Settings
from batos.events import Events
from batos.protocol.brief import as_file
from batos.protocol.errors import Busy
from batos.uvm import open_uvm
from kernel_side import DOCUMENT, PERSONA, QUESTION, fixed_replies
from null_process import NullProcess
from report import Goal, report

#: Of every ten clients one is slow and one vanishes.
SLOW, VANISHING = 3, 7
PATIENCE = 240.0
ANYWHERE = "tcp://127.0.0.1:*"
LAMP = as_file("lamp.txt", DOCUMENT.encode())


@dataclass(slots=True)
class Tally:
    """The observations of clients."""

    accepted: set[str] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)
    busy: int = 0
    cut: int = 0


@dataclass(slots=True)
class ServerRun:
    """A server as a process, which can be killed and started anew."""

    home: Path
    command: Sequence[str]
    environ: dict[str, str]
    process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Return the number of the process; 0: there is none."""
        return self.process.pid if self.process is not None else 0

    async def start(self) -> None:
        """Start it, and return once it listens."""
        self.process = await asyncio.create_subprocess_exec(*self.command, env=self.environ)
        async with asyncio.timeout(60):
            while (found := addresses.running_server(self.home)) is None or found.pid != self.pid:
                if self.process.returncode is not None:
                    raise RuntimeError("the server did not start")
                await asyncio.sleep(0.05)

    async def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End it, and return once it is gone."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(by)
            await self.process.wait()


@asynccontextmanager
async def serving(home: Path, ollama: str, slots: int, http: str = "off") -> AsyncIterator[ServerRun]:
    """Run the server of a home after genesis as a process; yield it once it listens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    environ = {**kept, "BATOS_HOME": str(home), "OLLAMA_HOST": ollama, "BATOS_MISSIONS": str(slots)}
    # The null daemon writes no methods.
    environ |= {"BATOS_INSTALL": "never", "BATOS_HTTP": http, "BATOS_ON_DISCONNECT": "finish"}
    async with open_uvm(Settings(home=home, ollama_host=ollama), Events(log=False)) as uvm:
        await uvm.readiness.genesis()
    command = (sys.executable, "-m", "batos", "serve", "-q", "--bind", ANYWHERE, "--events", ANYWHERE)
    served = ServerRun(home, command, environ)
    try:
        await served.start()
        yield served
    finally:
        await served.end()


def resident_mb(pid: int) -> float:
    """Return the memory of a process in MB; 0 where there is no /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def good(home: Path, texts: list[str], tally: Tally) -> None:
    """Submit one after another, then wait for the end of each."""
    async with AsyncClient(home) as client:
        missions = [await submit(client, text, tally) for text in texts]
        for mission in missions:
            await client.wait(mission, seconds=PATIENCE)


async def submit(client: AsyncClient, text: str, tally: Tally) -> str:
    """Submit a mission again until it is accepted."""
    while True:
        begun = time.perf_counter()
        try:
            mission = await client.submit(text, files=[LAMP], persona=PERSONA, effort="cycle")
        except Busy:
            tally.busy += 1
            await asyncio.sleep(0.2)
            continue
        tally.waits.append(time.perf_counter() - begun)
        tally.accepted.add(mission)
        return mission


async def rude(home: Path, texts: list[str], *, slow: float) -> None:
    """Submit and follow everything at once over a bare socket, read nothing for so many seconds, and leave."""
    found = keys.home_address(home)
    context = zmq.asyncio.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.rcvhwm, dealer.rcvbuf = 1, 4096
    found.credentials.apply(dealer)
    dealer.connect(found.endpoint)
    try:
        for number, text in enumerate(texts):
            # The image has the file by now: its reference is enough.
            brief = {"text": text, "persona": PERSONA, "effort": "cycle", "attachments": [LAMP.ref.model_dump()]}
            args = {"brief": brief, "follow": True}
            await dealer.send(json.dumps({"v": 1, "id": str(number), "verb": "submit", "args": args}).encode())
        await asyncio.sleep(slow)
    finally:
        dealer.close(linger=200)
        await asyncio.to_thread(context.term)


async def lost_count(home: Path, tally: Tally) -> tuple[int, int]:
    """Return how many missions were answered, and how many of those that were accepted have no end."""
    ends: dict[str, str] = {}
    async with AsyncClient(home) as client:
        listed = {each["id"] for each in await client.missions(10_000)}
        for mission in sorted(tally.accepted | listed):
            ends[mission] = str((await client.wait(mission, seconds=PATIENCE))["status"])
        tally.accepted |= listed
    answered = sum(status == "done" for status in ends.values())
    return answered, sum(status not in ("done", "failed", "cancelled") for status in ends.values())


async def ask_over_http(url: str, text: str, tally: Tally, *, leaves: bool) -> None:
    """Ask by OpenAI's wire until there is an answer; a client that `leaves` does so before it, and asks again."""
    body = {"model": f"{PERSONA.lower()}:cycle", "messages": [{"role": "user", "content": text}], "stream": leaves}
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        while True:
            begun = time.perf_counter()
            try:
                async with client.stream("POST", url, json=body, headers={"idempotency-key": text}) as reply:
                    if reply.status_code == 200:
                        tally.accepted.add(reply.headers["x-batos-mission"])
                        if leaves:
                            leaves, body["stream"] = False, False
                            continue
                        await reply.aread()
                        tally.waits.append(time.perf_counter() - begun)
                        return
            except httpx.TransportError:
                tally.cut += 1
            else:
                tally.busy += 1
            await asyncio.sleep(0.2)


async def run_http(submits: int, clients: int, slots: int) -> dict[str, Any]:
    """Measure one run through HTTP, with a kill in the middle."""
    folder = Path(tempfile.mkdtemp(prefix="batos-bench-"))
    home, replies, tally = folder / "home", folder / "replies.json", Tally()
    replies.write_text(fixed_replies(), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    try:
        async with NullProcess.running(replies) as null, serving(home, null.url, slots, place) as served:
            url = f"http://{place}/key/{keys.Keyring(home).token()}/v1/chat/completions"
            texts = [f"{QUESTION} ({number})" for number in range(submits)]

            half = asyncio.Event()

            async def ask_share(number: int) -> None:
                for place_of, text in enumerate(texts[number::clients]):
                    await ask_over_http(url, text, tally, leaves=place_of % 10 == VANISHING or number % 10 == VANISHING)
                    if 2 * len(tally.accepted) >= submits:
                        half.set()

            asking = asyncio.gather(*map(ask_share, range(clients)))
            await half.wait()
            await served.end(signal.SIGKILL)
            await served.start()
            await asking
            answered, without_end = await lost_count(home, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    cuts = statistics.quantiles(tally.waits, n=100, method="inclusive")
    return {
        "accepted": len(tally.accepted), "answered": answered, "lost": without_end + submits - len(tally.waits),
        "twice": len(tally.accepted) - submits, "busy": tally.busy, "cut": tally.cut,
        "p50_ms": round(cuts[49] * 1000, 2), "p99_ms": round(cuts[98] * 1000, 2),
    }  # fmt: skip


async def run_clients(submits: int, clients: int, slots: int, slow: float) -> dict[str, Any]:
    """Measure one run."""
    folder = Path(tempfile.mkdtemp(prefix="batos-bench-"))
    home, replies, tally = folder / "home", folder / "replies.json", Tally()
    replies.write_text(fixed_replies(), encoding="utf-8")
    try:
        async with NullProcess.running(replies) as null, serving(home, null.url, slots) as served:
            async with AsyncClient(home) as client:  # what is loaded with the first mission is no growth
                await client.ask(QUESTION, files=[LAMP], persona=PERSONA, effort="cycle")
            before = resident_mb(served.pid)
            shares = [[f"{QUESTION} ({c}, {n})" for n in range(submits // clients)] for c in range(clients)]
            begun = time.perf_counter()
            await asyncio.gather(*(one(home, number, share, tally, slow) for number, share in enumerate(shares)))
            answered, without_end = await lost_count(home, tally)
            print(f"{len(tally.accepted)} missions in {time.perf_counter() - begun:.1f} s", file=sys.stderr)
            grown = resident_mb(served.pid) - before
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    cuts = statistics.quantiles(tally.waits, n=100, method="inclusive")
    return {
        "accepted": len(tally.accepted) - 1,
        "answered": answered - 1,
        "lost": without_end,
        "busy": tally.busy,
        "p50_ms": round(cuts[49] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
        "rss_growth_mb": round(grown, 1),
    }


async def one(home: Path, number: int, texts: list[str], tally: Tally, slow: float) -> None:
    """Run one client of its kind."""
    if number % 10 == SLOW:
        await rude(home, texts, slow=slow)
    elif number % 10 == VANISHING:
        await rude(home, texts, slow=0.05)
    else:
        await good(home, texts, tally)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Measure what the server holds up to.")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--door", choices=("zmq", "http"), default="zmq", help="how clients come in")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    submits, clients, slow = (10, 10, 0.5) if options.quick else (500, 50, 10.0)
    if options.door == "http":
        figures = asyncio.run(run_http(submits, clients, 8))
    else:
        figures = asyncio.run(run_clients(submits, clients, 8, slow))
    goals = [Goal("lost missions", figures["lost"], 0), Goal("missions beyond one", figures.get("twice", 0), 0)]
    report({**figures, "submits": submits, "clients": clients}, goals, options.json)


if __name__ == "__main__":
    main()
