"""The HTTP door beside our own wire: checks by real clients, first frames and words, processor time, memory, the end.

`openai`, `ollama`, `mcp` and `replayed` are the shares of the checks in tests/server/http that pass, by the unmodified
clients and by recorded requests; None: that client is not installed. The rest is measured at a `batos
serve` in a process of its own, over an emulator that answers at once, by requests through HTTP and through ZeroMQ in
turn, eight at a time, over connections that are open, as clients keep theirs: `accepted_ms` until the first frame
(which follows the accepting commit), `first_word_over_zmq` the ratio of the times until a first word; `cpu_over_zmq`
the ratio of the server's processor time for missions; `stream_1000_tokens_cpu_ms` the cost of a streamed answer of a
thousand tokens beyond the same answer that nobody follows; `rss_mb` the memory of the open door; `shutdown_s` from
the signal to the end, with 50 silent streams open.

    python bench/faces.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias
from xml.etree import ElementTree

from batos.client.addresses import read_record
from batos.client.clients import AsyncClient
from batos.client.keys import Keyring
from report import Goal, report

ROOT: Final = Path(__file__).resolve().parents[1]
AT_ONCE: Final = 8
SILENT: Final = 50
#: The checks by real clients.
CHECKS: Final = ("tests/server/http/test_clients.py", "tests/server/http/test_mcp_endpoint.py")
#: Seconds after an answer in which it is remembered.
SETTLED: Final = 1.5
QUESTION: Final = "How do tides work at pier {number}?"
#: A thousand tokens without a loop in them, which would be stopped.
LONG: Final = " ".join(f"w{number * 7919 % 10_007}" for number in range(1_000)) + "."
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server in a process of its own: its home, the process, its address over HTTP and the home's token."""

    home: Path
    pid: int
    port: int
    token: str

    def cpu(self) -> float:
        """Return the processor time of the server so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def resident(self) -> float:
        """Return the memory of the server, in MiB."""
        return int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def run_emulator(*options: str) -> AsyncIterator[str]:
    """Run an emulator, and yield its address."""
    command = [sys.executable, "-m", "ollama_emulator", "--port", "0", *options]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        found = re.search(r"http://[0-9.:]+", said)
        assert found, said
        yield found[0]
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def run_server(home: Path, daemon: str, http: str = "127.0.0.1:0") -> AsyncIterator[ServerProcess]:
    """Run a server, its genesis done, and yield it."""
    await asyncio.to_thread(home.mkdir, mode=0o700, exist_ok=True)
    anywhere = "tcp://127.0.0.1:*"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    environ |= {"BATOS_HOME": str(home), "OLLAMA_HOST": daemon, "BATOS_INSTALL": "never", "BATOS_HTTP": http}
    command = [sys.executable, "-m", "batos", "serve", "--bind", anywhere, "--events", anywhere, "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "the server did not start"
        record = read_record(home)
        assert record is not None
        async with AsyncClient(home) as client:
            await client.genesis()
        yield ServerProcess(home, process.pid, int(record.http.rpartition(":")[2] or 0), Keyring(home).token())
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


# -- one question

Opened: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from a request to its first frame and to its first word."""

    accepted: float
    word: float


def request(server: ServerProcess, text: str) -> bytes:
    """Return a question over HTTP whose answer streams."""
    body = json.dumps(
        {"model": "robin:reflex", "stream": True, "messages": [{"role": "user", "content": text}]}
    ).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %b\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (server.token.encode(), len(body), body)
    )


async def stream(server: ServerProcess, text: str) -> Opened:
    """Send a question over HTTP, and return the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)
    writer.write(request(server, text))
    return reader, writer


async def by_http(server: ServerProcess, text: str, opened: Opened | None = None) -> Times:
    """Ask over HTTP to the end; over a connection that is open already, as clients keep theirs, if there is one."""
    reader, writer = opened or await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)
    began = time.perf_counter()
    writer.write(request(server, text))
    accepted = word = 0.0
    while line := await reader.readline():
        if not accepted and line.startswith(b"data: "):
            accepted = time.perf_counter() - began
        if not word and b'"delta":{"content":"' in line:
            word = time.perf_counter() - began
    writer.close()
    assert word, text
    return Times(accepted, word)


async def by_zmq(client: AsyncClient, text: str) -> Times:
    """Ask over the wire of our own to the end."""
    began, heard = time.perf_counter(), dict[str, float]()

    def on_event(event: str, _keys: object) -> None:
        heard.setdefault(event, time.perf_counter() - began)

    def on_acknowledged(_told: object) -> None:
        heard.setdefault("acknowledged", time.perf_counter() - began)

    brief = {"text": text, "persona": "ROBIN", "effort": "reflex", "conversation": "new"}
    await client.call("submit", {"brief": brief, "follow": True}, on_event, on_acknowledged)
    return Times(heard["acknowledged"], heard["mission.token"])


# -- what is measured


async def compare(server: ServerProcess, missions: int) -> dict[str, float]:
    """Return first frames and words, and processor time, of as many missions through each in turn."""
    frames, ratios, cpu = list[float](), list[float](), {"http": 0.0, "zmq": 0.0}
    async with AsyncClient(server.home) as client:
        for turn in range(missions // AT_ONCE + 2):
            words = dict[str, float]()
            for number, way in enumerate(("http", "zmq") if turn % 2 else ("zmq", "http")):
                texts = [QUESTION.format(number=(2 * turn + number) * AT_ONCE + each) for each in range(AT_ONCE)]
                began = server.cpu()
                if way == "http":
                    opened = [await asyncio.open_connection("127.0.0.1", server.port, limit=2**20) for _ in texts]
                    found = await asyncio.gather(*map(by_http, repeat(server), texts, opened))
                else:
                    found = await asyncio.gather(*(by_zmq(client, each) for each in texts))
                words[way] = median(each.word for each in found)
                if turn > 1:  # the first ones warm up
                    cpu[way] += server.cpu() - began
                    frames += [each.accepted for each in found] if way == "http" else []
            ratios += [words["http"] / words["zmq"]] if turn > 1 else []
            print(f"turn {turn}: {words}", file=sys.stderr, flush=True)
    return {
        "accepted_ms": 1e3 * median(frames),
        "first_word_over_zmq": median(ratios),
        "cpu_over_zmq": cpu["http"] / cpu["zmq"],
    }


async def measure_stream(server: ServerProcess, times: int) -> float:
    """Return the processor time that streaming a thousand tokens costs, in milliseconds."""
    followed = alone = 0.0
    async with AsyncClient(server.home) as client:
        for number in range(times + 1):
            began = server.cpu()
            await by_http(server, f"Tell me all of it, {number}.")
            await asyncio.sleep(SETTLED)
            middle = server.cpu()
            brief = {"persona": "ROBIN", "effort": "reflex", "conversation": "new"}
            await client.wait(await client.submit(f"Tell me all of it, {number} again.", **brief))
            await asyncio.sleep(SETTLED)
            if number:
                followed, alone = followed + middle - began, alone + server.cpu() - middle
    return max(0.0, 1e3 * (followed - alone) / times)


async def measure_memory(folder: Path, daemon: str) -> float:
    """Return how much larger a server with an open door is, after a few questions each, in MiB."""
    sizes = {}
    for http in ("off", "127.0.0.1:0"):
        async with run_server(folder / f"home-{len(http)}", daemon, http) as server, AsyncClient(server.home) as client:
            for number in range(8):
                await by_zmq(client, QUESTION.format(number=number))
            if http != "off":
                await asyncio.gather(*(by_http(server, QUESTION.format(number=-each)) for each in range(AT_ONCE)))
            sizes[http] = server.resident()
    return sizes["127.0.0.1:0"] - sizes["off"]


async def measure_end(home: Path, silent: int) -> float:
    """Return the seconds from the signal to the end of a server with silent streams open."""
    async with run_emulator("--tok-s", "0.05") as daemon, AsyncExitStack() as stack:
        server = await stack.enter_async_context(run_server(home, daemon))
        opened = [await stream(server, QUESTION.format(number=each)) for each in range(silent)]
        for reader, _ in opened:
            await reader.readuntil(b"data: ")
        began = time.perf_counter()
        await stack.aclose()
        took = time.perf_counter() - began
        for reader, writer in opened:
            assert b"no_server" in await reader.read(), "a stream was not told why it ended"
            writer.close()
        return took


def shares() -> dict[str, float | None]:
    """Return the shares of real clients' checks that pass; None where a client is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        command = [sys.executable, "-m", "pytest", "-q", *CHECKS, f"--junitxml={told}"]
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        cases = list(ElementTree.parse(told).getroot().iter("testcase"))  # noqa: S314 - it is pytest's own
    kinds = {"openai": "test_openai", "ollama": "test_ollama", "mcp": "test_mcp", "replayed": "test_recorded"}
    return {kind: _share([each for each in cases if each.attrib["name"].startswith(of)]) for kind, of in kinds.items()}


def _share(cases: Sequence[ElementTree.Element]) -> float | None:
    run = [each for each in cases if each.find("skipped") is None]
    passed = [each for each in run if each.find("failure") is None and each.find("error") is None]
    return len(passed) / len(run) if run else None


async def measure(quick: bool) -> dict[str, Any]:
    """Return all figures but the shares."""
    missions, times, silent = (16, 1, 5) if quick else (200, 8, SILENT)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        long = place / "faults.json"
        long.write_text(json.dumps([{"match": {"path": "/api/chat", "every": 1}, "do": "text", "text": LONG}]))
        async with run_emulator() as daemon:
            async with run_server(place / "home", daemon) as server:
                found: dict[str, Any] = await compare(server, missions)
            found["rss_mb"] = await measure_memory(place, daemon)
            async with run_server(place / "silent", daemon):
                pass  # with a daemon that is slow its genesis would take minutes
        async with run_emulator("--faults", str(long)) as daemon, run_server(place / "long", daemon) as server:
            found["stream_1000_tokens_cpu_ms"] = await measure_stream(server, times)
        found["shutdown_s"] = await measure_end(place / "silent", silent)
    return {name: round(value, 3) for name, value in found.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few missions and no clients' checks: shape, not figures")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    found = asyncio.run(measure(given.quick))
    parts: dict[str, float | None] = dict.fromkeys(("openai", "ollama", "mcp", "replayed")) if given.quick else shares()
    at_most = {
        "accepted_ms": 60, "first_word_over_zmq": 1.1, "cpu_over_zmq": 1.15, "rss_mb": 12,
        "stream_1000_tokens_cpu_ms": 60, "shutdown_s": 3,
    }  # fmt: skip
    goals = [Goal(name, value, 1.0, "at_least") for name, value in parts.items()]
    goals += [Goal(name, found[name], goal) for name, goal in at_most.items()]
    report({"bench": "faces", **parts, **found}, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
