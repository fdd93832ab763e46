"""Load that the server withstands: submits by many clients at once, slow and vanishing ones among them, none lost.

`batos serve` runs as a process over a null daemon, whose answers are fixed and come at once, so that what is measured
is ours. Good clients submit and wait for the acknowledgement (`p50_ms`, `p99_ms`: until it comes, which is after the
commit) and then for the end. Slow ones follow what they asked for and do not read; vanishing ones submit over a bare
socket and are gone. Whatever was acknowledged, or is in the server's list at the end, was accepted; at the end the
server is asked for every one of them: one without an end is lost. `busy` counts refusals, each of which is tried again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


@asynccontextmanager
async def serving(home: Path, ollama: str, slots: int) -> AsyncIterator[int]:
    """Run the server of a home after genesis as a process; yield its pid once it listens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    environ = {**kept, "BATOS_HOME": str(home), "OLLAMA_HOST": ollama, "BATOS_MISSIONS": str(slots)}
    environ |= {"BATOS_INSTALL": "never", "BATOS_HTTP": "off"}  # the null daemon writes no methods
    async with open_uvm(Settings(home=home, ollama_host=ollama), Events(log=False)) as uvm:
        await uvm.readiness.genesis()
    command = (sys.executable, "-m", "batos", "serve", "-q", "--bind", ANYWHERE, "--events", ANYWHERE)
    process = await asyncio.create_subprocess_exec(*command, env=environ)
    try:
        async with asyncio.timeout(60):
            while addresses.running_server(home) is None:
                if process.returncode is not None:
                    raise RuntimeError("the server did not start")
                await asyncio.sleep(0.05)
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


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
    socket = context.socket(zmq.DEALER)
    socket.rcvhwm, socket.rcvbuf = 1, 4096
    found.credentials.apply(socket)
    socket.connect(found.endpoint)
    try:
        for number, text in enumerate(texts):
            # The image has the file by now: its reference is enough.
            brief = {"text": text, "persona": PERSONA, "effort": "cycle", "attachments": [LAMP.ref.model_dump()]}
            args = {"brief": brief, "follow": True}
            await socket.send(json.dumps({"v": 1, "id": str(number), "verb": "submit", "args": args}).encode())
        await asyncio.sleep(slow)
    finally:
        socket.close(linger=200)
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


async def run_clients(submits: int, clients: int, slots: int, slow: float) -> dict[str, Any]:
    """Measure one run."""
    folder = Path(tempfile.mkdtemp(prefix="batos-bench-"))
    home, replies, tally = folder / "home", folder / "replies.json", Tally()
    replies.write_text(fixed_replies(), encoding="utf-8")
    try:
        async with NullProcess.running(replies) as null, serving(home, null.url, slots) as pid:
            async with AsyncClient(home) as client:  # what is loaded with the first mission is no growth
                await client.ask(QUESTION, files=[LAMP], persona=PERSONA, effort="cycle")
            before = resident_mb(pid)
            shares = [[f"{QUESTION} ({c}, {n})" for n in range(submits // clients)] for c in range(clients)]
            begun = time.perf_counter()
            await asyncio.gather(*(one(home, number, share, tally, slow) for number, share in enumerate(shares)))
            answered, without_end = await lost_count(home, tally)
            print(f"{len(tally.accepted)} missions in {time.perf_counter() - begun:.1f} s", file=sys.stderr)
            grown = resident_mb(pid) - before
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    submits, clients, slow = (10, 10, 0.5) if options.quick else (500, 50, 10.0)
    figures = asyncio.run(run_clients(submits, clients, 8, slow))
    goals = [Goal("lost missions", figures["lost"], 0)]
    report({**figures, "submits": submits, "clients": clients}, goals, options.json)


if __name__ == "__main__":
    main()
