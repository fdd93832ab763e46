"""Effects through aborted work and real kills: what acts that should not, what acts twice, and what is left undone.

A piece of work stages an effect and is aborted: its model fails, it is cancelled, its method breaks, it is undone
before the effect is begun, or it was only a dream. Then the same work is done again, and its process is killed at a
point of the effect's life: staged, begun, done and not recorded, recorded. The next process goes on. All of that for
each class of sink: keyed, queryable, blind. The world is seen from outside: a file, and a program that does what comes
under one key once.

`leaks` are effects of aborted work that were seen in the world, `attempts` the most often that an effect was, and
`recovered` the share of kills after which it had happened exactly once: keyed and queryable ones by themselves, blind
ones after the one question that they may ask (`asked`, of which `asked_needlessly` were not of blind ones). The same is
done by a saga as it is written plainly, whose file is looked at after it has taken back what it did, and by an agent
with LangGraph's SQLite saver, where that is installed or a folder has it; `peer` has their figures.

    python bench/effects.py [--langgraph FOLDER] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Final

from effects_saga_side import LINE
from report import Goal, report

ABORTS: Final = ("failed", "cancelled", "method", "undone", "dream")
POINTS: Final = ("staged", "begun", "done", "recorded")
SINKS: Final = ("keyed", "queryable", "blind")
#: The program of each arm.
SIDES: Final = {"mind": "effects_side.py", "saga": "effects_saga_side.py", "graph": "effects_graph_side.py"}
#: Seconds that a process may take.
PATIENCE: Final = 120


@dataclass
class Program:
    """A program that takes posts; what comes under one key it does once, and without a key each time."""

    url: str = ""
    keys: set[str] = field(default_factory=set)
    done: int = 0

    def take(self, path: str, key: str) -> None:
        """Do what was posted."""
        if path == "/undo":
            return
        if path == "/keyed" and key in self.keys:
            return
        self.keys.add(key)
        self.done += 1


@contextmanager
def listening() -> Iterator[Program]:
    """Let a program listen at an address of this machine."""
    program = Program()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            program.take(self.path, self.headers.get("Idempotency-Key", ""))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        program.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield program
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Arm:
    """Names one of those that are measured, and has the environment of its processes."""

    name: str
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def can_import(self, *modules: str) -> bool:
        """Test if its processes find some modules."""
        command = [sys.executable, "-c", f"import {', '.join(modules)}"]
        return subprocess.run(command, env=self.environment, stderr=subprocess.DEVNULL, check=False).returncode == 0


@dataclass
class Figures:
    """Counts what one arm did."""

    kills: int = 0
    leaks: int = 0
    attempts: int = 0
    once: int = 0
    asked: int = 0
    asked_needlessly: int = 0

    def as_dict(self) -> dict[str, float]:
        """Return the figures with the share that recovered."""
        recovered = round(self.once / self.kills, 3) if self.kills else 0.0
        return {
            "leaks": self.leaks, "attempts": self.attempts, "recovered": recovered, "asked": self.asked,
            "asked_needlessly": self.asked_needlessly, "kills": self.kills,
        }  # fmt: skip


def run_one(arm: Arm, abort: str, point: str, sink: str, figures: Figures) -> None:
    """Let one arm abort a piece of work, do it again, be killed at a point, and go on."""
    program_of = [sys.executable, str(Path(__file__).with_name(SIDES[arm.name]))]
    with listening() as program, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "world").mkdir()
        file = place / "world" / "log.txt"

        def count_seen() -> int:
            appended = file.read_text().count(LINE) if file.exists() else 0
            return appended if sink == "queryable" else program.done

        given = {"place": folder, "url": program.url, "abort": abort, "point": point, "sink": sink}
        with subprocess.Popen(
            [*program_of, json.dumps(given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=arm.environment,
        ) as first:  # fmt: skip
            assert first.stdin is not None
            assert first.stdout is not None
            aborted = any(line.startswith('{"aborted') for line in iter(first.stdout.readline, ""))
            leaked = max(count_seen(), program.done)
            figures.leaks += int(leaked > 0 or not aborted)
            first.stdin.write("\n")
            first.stdin.close()
            first.stdout.read()
            figures.kills += int(first.wait(PATIENCE) == -signal.SIGKILL)
        told = [
            json.loads(line)
            for line in subprocess.run(
                [*program_of, json.dumps({**given, "abort": "", "point": ""})], check=True, env=arm.environment,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE,
            ).stdout.splitlines()
            if line.startswith("{")
        ]  # fmt: skip
        own = count_seen() - leaked
        figures.attempts = max(figures.attempts, own)
        unknown = int(told[-1]["unknown"])
        figures.asked += unknown
        figures.asked_needlessly += unknown if sink != "blind" else 0
        # A person who is asked looks, and lets it be done again where it is not there.
        figures.once += int(own == 1 or (unknown == 1 and sink == "blind" and own == 0))


def measure(arm: Arm, cases: Sequence[tuple[str, str, str]]) -> Figures:
    """Return the figures of one arm."""
    figures = Figures()
    for number, (abort, point, sink) in enumerate(cases, 1):
        run_one(arm, abort, point, sink, figures)
        if number % 10 == 0 or number == len(cases):
            print(f"{arm.name}: {number} of {len(cases)}: {figures.as_dict()}", file=sys.stderr, flush=True)
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two cases of each arm: shape, not figures")
    parser.add_argument("--langgraph", type=Path, help="a folder that has langgraph and its SQLite saver")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    cases = list(product(ABORTS, POINTS, SINKS))
    if given.quick:
        cases = [("undone", "begun", "queryable"), ("method", "done", "blind")]
    own = measure(Arm("mind"), cases)
    peer: dict[str, object] = {"saga": measure(Arm("saga"), cases).as_dict(), "langgraph": None}
    path = {} if given.langgraph is None else {"PYTHONPATH": str(given.langgraph)}
    graph = Arm("graph", {**os.environ, **path})
    if graph.can_import("langgraph.graph", "langgraph.checkpoint.sqlite"):
        peer["langgraph"] = measure(graph, cases).as_dict()
    else:
        remedy = "pip install --target FOLDER langgraph langgraph-checkpoint-sqlite, then --langgraph FOLDER"
        print(f"langgraph is not installed, and was left out: {remedy}", file=sys.stderr)
    goals = [
        Goal("leaks", own.leaks, 0),
        Goal("attempts", own.attempts, 1),
        Goal("recovered", own.as_dict()["recovered"], 1.0, "at_least"),
        Goal("asked_needlessly", own.asked_needlessly, 0),
    ]
    report({"bench": "effects", **own.as_dict(), "peer": peer}, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
