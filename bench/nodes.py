"""Nodes on one PostgreSQL: how soon a dead one is replaced, and what three do beside what one does.

Each node is a process with an emulator in another one (four calls at once, 300 ms each). Missions take five calls, one
after another, and each node keeps more of them in flight than its emulator answers at once. For the takeover a node is
killed with missions in its hands; the time ends when another has begun to run one of them again. Where both cores are
busy for more than 85 % of the measured time, the machine and not the nodes would be measured: then the calls are
lengthened, and `latency_ms` says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import servers_side
from batos.image import roots
from batos.image.nodes import claims
from batos.image.readable import open_read_only
from report import Goal, report

_SIDE: Final = Path(__file__).with_name("nodes_side.py")
LATENCY_MS: Final = 300.0
LEASE: Final = 10.0
#: Missions that a node runs at once, and those that each keeps in flight.
MISSIONS, LOAD = 8, 8
#: The share of both cores above which calls are lengthened, how much, and how often.
BUSY, LONGER, TRIES = 0.85, 2.0, 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The time of a call, the seconds of warm-up and of measuring, and those of a lease."""

    latency_ms: float = LATENCY_MS
    warm_up: float = 12.0
    seconds: float = 60.0
    lease: float = LEASE


@dataclass(slots=True, eq=False)
class Node:
    """A node in a process of its own: its fence, and when each mission that it was asked ended."""

    process: asyncio.subprocess.Process
    fence: int = 0
    ended: list[float] = field(default_factory=list)
    failures: int = 0
    calls: set[int] = field(default_factory=set)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Take note of what it says."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            if not line.startswith(b"{"):
                continue
            told = json.loads(line)
            if "ready" in told:
                self.fence = told["ready"]
                self.ready.set()
            else:
                self.ended.append(told["done"])
                self.calls.add(told["calls"])
                self.failures += told["status"] != "done"
        self.ready.set()

    def go(self) -> None:
        """Let it ask its questions."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")


class Cluster:
    """Two empty databases on a server, and the nodes on them."""

    def __init__(self, folder: Path, server: str, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self.image, self.journal = f"{server}image", f"{server}journal"
        self.nodes: list[Node] = []
        self._reading: list[asyncio.Task[None]] = []

    async def add(self) -> Node:
        """Start a node and wait until it works."""
        name = str(len(self.nodes) + 1)
        given = {
            "home": str(self._folder / f"node-{name}"), "image": self.image, "journal": self.journal, "name": name,
            "latency_ms": self._plan.latency_ms, "lease": self._plan.lease, "missions": MISSIONS, "load": LOAD,
        }  # fmt: skip
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_SIDE), json.dumps(given), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        node = Node(process)
        self.nodes.append(node)
        self._reading.append(asyncio.create_task(node.read()))
        await asyncio.wait_for(node.ready.wait(), 300)
        if not node.fence:
            raise RuntimeError(f"node {name} ended before it worked")
        return node

    async def close(self) -> None:
        """Kill all nodes, with their emulators."""
        for node in self.nodes:
            await kill(node)
        await asyncio.gather(*self._reading)


async def kill(node: Node) -> None:
    """Kill a node at once, and its emulator with it."""
    with suppress(ProcessLookupError):
        os.killpg(node.process.pid, signal.SIGKILL)
    await node.process.wait()


@asynccontextmanager
async def cluster(plan: Plan) -> AsyncIterator[Cluster]:
    """Start a server with two empty databases; at the end all is gone."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="batos-nodes-")))
        server = stack.enter_context(servers_side.postgres_server(sessions=200))
        servers_side.ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
        made = Cluster(folder, server, plan)
        stack.push_async_callback(made.close)
        yield made


def busy_seconds() -> tuple[float, float]:
    """Return the seconds that all cores were busy, and those of all cores together, since the machine started."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:  # no Linux
        return 0.0, 1.0
    times = [float(word) for word in words]
    return sum(times) - times[3] - times[4], sum(times)


async def throughput(nodes: Sequence[Node], plan: Plan) -> tuple[float, float]:
    """Return the missions a second of some nodes, and the share of all cores that was busy meanwhile."""
    for node in nodes:
        node.go()
    await asyncio.sleep(plan.warm_up)
    began, busy, whole = time.monotonic(), *busy_seconds()
    await asyncio.sleep(plan.seconds)
    ended = time.monotonic()
    busy, whole = (now - before for now, before in zip(busy_seconds(), (busy, whole), strict=True))
    counted = sum(began <= at < ended for node in nodes for at in node.ended)
    if any(node.failures for node in nodes):
        raise RuntimeError("missions failed")
    calls = set().union(*(node.calls for node in nodes))
    rate, share = counted / (ended - began), busy / max(whole, 1e-9)
    print(
        f"{len(nodes)} nodes: {rate:.2f} missions/s of {sorted(calls)} calls, {share:.0%} of the cores busy",
        file=sys.stderr,
    )
    return rate, share


async def throughput_of(plan: Plan, number: int) -> tuple[float, float]:
    """Return the same for so many new nodes on databases of their own."""
    async with cluster(plan) as made:
        for _ in range(number):
            await made.add()
        return await throughput(made.nodes, plan)


async def until(test: Callable[[], bool]) -> None:
    """Wait until a test of the image is passed: what is waited for is done by other processes."""
    while not test():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def takeover(made: Cluster, plan: Plan) -> float:
    """Kill a node with missions in its hands; return the seconds until the other one runs one of them."""
    await made.add()
    dying = await made.add()
    dying.go()
    with open_read_only(made.image, made.journal) as faces:

        def running() -> set[str]:
            with faces.root() as root:
                node = root[roots.NODES][dying.fence]
                return {
                    name
                    for name in node["claims"]
                    if claims.is_claimed(roots.mission_record(root, name).status, dying.fence)
                }

        await until(lambda: len(running()) > 1)
        held = running()
        await kill(dying)
        killed = time.monotonic()
        await until(lambda: not held <= running())
        seconds = time.monotonic() - killed
    print(f"taken over {seconds:.2f} s after the kill, lease {plan.lease:g} s", file=sys.stderr)
    return seconds


def figures(plan: Plan, taken: float, rates: Sequence[float], shares: Sequence[float]) -> dict[str, Any]:
    """Return the figures of the document."""
    return {
        "takeover_s": round(taken, 2),
        "lease_s": plan.lease,
        "speedup_3": round(rates[-1] / rates[0], 2) if rates[0] else None,
        "cpu_share": round(max(shares), 2),
        "rates": [round(each, 2) for each in rates],
        "latency_ms": plan.latency_ms,
    }


async def measure(plan: Plan) -> dict[str, Any]:
    """Return the figures; the calls are lengthened while the cores have too much to do."""
    async with cluster(plan) as made:
        taken = await takeover(made, plan)
    for rest in reversed(range(TRIES)):
        rates, shares = zip(*[await throughput_of(plan, number) for number in (1, 3)], strict=True)
        if max(shares) <= BUSY or not rest:
            break
        plan = Plan(plan.latency_ms * LONGER, plan.warm_up, plan.seconds, plan.lease)
        print(f"both cores are busy: calls of {plan.latency_ms:g} ms now", file=sys.stderr)
    return figures(plan, taken, rates, shares)


async def look(plan: Plan) -> dict[str, Any]:
    """Return the figures of two nodes alone: of the one that takes over there is a rate, and nothing to compare."""
    async with cluster(plan) as made:
        taken = await takeover(made, plan)
        rate, share = await throughput(made.nodes[:1], plan)
    return figures(plan, taken, [rate], [share])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a smoke run with nothing to compare",
    )
    parser.add_argument("--json", type=Path, help="write the report to this file too")
    given = parser.parse_args(arguments)
    quick = Plan(latency_ms=20.0, warm_up=0.0, seconds=0.5, lease=1.0)
    found = asyncio.run(look(quick) if given.quick else measure(Plan()))
    goals = [
        Goal("takeover_s", found["takeover_s"], found["lease_s"] + 1),
        Goal("speedup_3", found["speedup_3"], 2.4, "at_least"),
    ]
    report(found, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
