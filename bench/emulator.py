"""Cost of the emulator: replies a second and CPU a call, whole and streamed, over real sockets.

The emulator is a process of its own and so is its client: raw sockets in one thread that only look for the end of a
reply. Where there are two cores each has one to itself. CPU is the emulator's own, from /proc, so that a busy machine
changes `per_second` and hardly `per_cpu_second`, which is what one core holds. `plain` is a question without a schema;
`persona` is what a mission sends: a persona's system text and evidence, 6 kB, and a schema of 1 kB.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from report import Goal, report

MODEL = "llama3.2:3b"
CONNECTIONS = (1, 8, 32)
GOAL = 1000  # whole replies a second of CPU
_SENTENCE = "Water is a molecule of two atoms of hydrogen and one of oxygen, and it carries what lives. "
_FIELDS = ("answer", "reason", "caveat", "next_step", "tone", "scope")


def bodies() -> dict[str, dict[str, Any]]:
    """Return the requests by name, without `stream`."""
    evidence = "\n".join(f"[{number}] {_SENTENCE * 6}" for number in range(1, 11))
    return {
        "plain": {"messages": [{"role": "user", "content": "What is water made of, and why does it matter?"}]},
        "persona": {
            "messages": [
                {"role": "system", "content": "You are ROBIN, who looks for what is true. " + "Stay calm. " * 40},
                {"role": "user", "content": f"<evidence>\n{evidence}\n</evidence>\n\nWhat is water made of?"},
            ],
            "format": schema(),
            "options": {"temperature": 0.2, "num_predict": 512, "num_ctx": 8192},
        },
    }


def schema() -> dict[str, Any]:
    """Return a decision of about a kilobyte: texts with limits, a list of citations, a number, a choice."""
    text = {"type": "string", "maxLength": 160}
    citation = {
        "type": "object",
        "properties": {"quote": {"type": "string", "maxLength": 200}, "document": {"type": "integer", "minimum": 1}},
        "required": ["quote", "document"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = dict.fromkeys(_FIELDS, text)
    properties["citations"] = {"type": "array", "items": citation, "maxItems": 4}
    properties["confidence"] = {"type": "number", "minimum": 0, "maximum": 1}
    properties["stance"] = {"type": "string", "enum": ["agrees", "doubts", "refuses", "abstains"]}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def request_bytes(body: Mapping[str, Any], *, stream: bool) -> bytes:
    """Return a chat request as a client sends it."""
    text = json.dumps({"model": MODEL, **body, "stream": stream}).encode()
    head = (
        f"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    )
    return head.encode() + b"\r\n\r\n" + text


@contextmanager
def emulator() -> Iterator[tuple[int, tuple[str, int]]]:
    """Run an emulator as a process; yield: its pid and address."""
    command = [sys.executable, "-m", "batos", "emulator", "--port", "0", "--model", MODEL]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OLLAMA_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            found = [urlsplit(word) for word in words if word.startswith("http")]
            if not found:
                raise RuntimeError("the emulator did not start")
            yield process.pid, (str(found[0].hostname), int(found[0].port or 0))
        finally:
            process.terminate()


def apart(pid: int) -> bool:
    """Give the emulator a core and this process another; False where that cannot be."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return False
    os.sched_setaffinity(pid, cores[:1])
    os.sched_setaffinity(0, cores[1:])
    return True


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used so far. OSError where there is no /proc."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
    except OSError:  # a kernel without it
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Caller:
    """A connection: the bytes that have come of the reply that it waits for."""

    wire: socket.socket
    seen: bytes = b""

    def ended(self) -> bool:
        """Test if the reply is complete; RuntimeError for a status other than 200."""
        head = self.seen.find(b"\r\n\r\n")
        if head < 0:
            return False
        if not self.seen.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self.seen[:300].decode("utf-8", "replace"))
        at = self.seen.find(b"Content-Length: ", 0, head)
        if at < 0:
            return self.seen.endswith(b"0\r\n\r\n")
        return len(self.seen) >= head + 4 + int(self.seen[at + 16 : self.seen.index(b"\r\n", at)])


def drive(address: tuple[str, int], request: bytes, connections: int, calls: int) -> float:
    """Send so many calls over so many connections, each as soon as the last on it was answered; the seconds it took."""
    with selectors.DefaultSelector() as selector:
        wires = [socket.create_connection(address) for _ in range(min(connections, calls))]
        try:
            begun = time.perf_counter()
            for wire in wires:
                selector.register(wire, selectors.EVENT_READ, Caller(wire))
                wire.sendall(request)
            sent, answered = len(wires), 0
            while answered < calls:
                for key, _ in selector.select(30):
                    caller: Caller = key.data
                    data = caller.wire.recv(1 << 18)
                    if not data:
                        raise RuntimeError("the emulator closed a connection")
                    caller.seen += data
                    if caller.ended():
                        answered += 1
                        caller.seen = b""
                        if sent < calls:
                            caller.wire.sendall(request)
                            sent += 1
            return time.perf_counter() - begun
        finally:
            for wire in wires:
                wire.close()


def measure_cells(calls: int, rounds: int) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Measure every cell: way, request, connections; of several rounds the one that used least CPU."""
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    with emulator() as (pid, address):
        apart(pid)
        for way in ("whole", "streamed"):
            for name, body in bodies().items():
                request = request_bytes(body, stream=way == "streamed")
                drive(address, request, 8, max(8, calls // 10))
                cells = figures.setdefault(way, {}).setdefault(name, {})
                for connections in CONNECTIONS:
                    tries = [cell(pid, address, request, connections, calls) for _ in range(rounds)]
                    cells[str(connections)] = min(tries, key=lambda found: found["cpu_ms_per_call"])
                    print(f"{way} {name} {connections}: {cells[str(connections)]}", file=sys.stderr)
    return figures


def cell(pid: int, address: tuple[str, int], request: bytes, connections: int, calls: int) -> dict[str, float]:
    """Measure one cell: replies a second by the clock and by CPU, and CPU a call."""
    before = cpu_seconds(pid)
    seconds = drive(address, request, connections, calls)
    used = max(cpu_seconds(pid) - before, 1e-9)
    return {
        "per_second": round(calls / seconds, 1),
        "per_cpu_second": round(calls / used, 1),
        "cpu_ms_per_call": round(used * 1000 / calls, 4),
    }


def goals(figures: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Sequence[Goal]:
    """Return the goals: a thousand whole replies on one core, plain and as a mission asks for them."""
    return [
        Goal(
            f"whole {name}: replies a second on one core, {connections} connections",
            figures["whole"][name][str(connections)]["per_cpu_second"],
            GOAL,
            "at_least",
        )
        for name in ("plain", "persona")
        for connections in CONNECTIONS
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Measure what a call of the emulator costs.")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    calls, rounds = (32, 1) if options.quick else (2000, 3)
    figures = measure_cells(calls, rounds)
    sizes = {name: len(request_bytes(body, stream=False)) for name, body in bodies().items()}
    report({**figures, "calls": calls, "request_bytes": sizes}, goals(figures), options.json)


if __name__ == "__main__":
    main()
