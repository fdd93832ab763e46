"""Running `batos` as its users do, with a home of their own: by calling the command line, or as processes.

Most tests look at the output and the exit code alone: `User.run` calls, in this process. What a process alone has
(streams of the system's, an encoding, signals, an import that nobody did before) is looked at in one: `User.process`
starts from nothing and runs to its end, `User.start` is forked (fork_server.py) and runs on.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fork_server import ForkedCommand

from batos.cli import entry
from batos.cli.surroundings import Surroundings

BATOS = (sys.executable, "-m", "batos")
#: An emulator that knows the models of a home whose genesis is done.
WITH_MODELS = ("--model", "llama3.1:8b-instruct-q4_K_M", "--model", "all-minilm:latest")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What came of a call or a process that has ended."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Each line of stdout as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def document(self) -> dict[str, Any]:
        """The last line of stdout as JSON."""
        return self.documents[-1]


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a home and a daemon."""

    home: Path
    ollama: str

    def environ(self) -> dict[str, str]:
        """The environment of what this user runs; the loop is watched."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
        return {**kept, "BATOS_HOME": str(self.home), "OLLAMA_HOST": self.ollama, "BATOS_DEBUG_LOOP": "1"}

    def start(self, *arguments: str, piped: bool = False) -> ForkedCommand:
        """Start a process that runs on, with nothing at stdin, or a pipe."""
        with Path(os.devnull).open("rb") as nothing:
            return ForkedCommand(arguments, self.environ(), None if piped else nothing.fileno(), None, None)

    def run(self, *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None) -> ProcessResult:
        """Call the command line in this process; stdin is a file, as behind `<`."""
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            streams = [
                io.TextIOWrapper(stream, "utf-8", "backslashreplace") for stream in (given, io.BytesIO(), io.BytesIO())
            ]
            environ = {**self.environ(), **(environ or {})}
            code = entry.run(list(arguments), Surroundings(environ, Path.cwd(), *streams))
            for stream in streams[1:]:
                stream.seek(0)
            return ProcessResult(code, streams[1].read(), streams[2].read())

    def process(self, *arguments: str, environ: Mapping[str, str] | None = None, shell: str = "") -> ProcessResult:
        """Run a process to its end, with nothing at stdin; `shell` is what a shell does to its streams, as `>&-`."""
        through = ("sh", "-c", f'exec "$@" {shell}', "sh") if shell else ()
        done = subprocess.run(
            [*through, *BATOS, *arguments],
            text=True,
            env={**self.environ(), **(environ or {})},
            capture_output=True,
            input="",
            timeout=60,
            check=False,
        )
        return ProcessResult(done.returncode, done.stdout, done.stderr)


class EmulatorAddress(str):
    """An emulator's address, and the process that listens there."""

    pid: int

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """For a while it answers nobody: what was asked of it has no end meanwhile, however slow the machine is."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


@contextmanager
def emulator(*arguments: str, chat_seconds: float = 0.0) -> Iterator[EmulatorAddress]:
    """`batos emulator` as a process; gives its address. Each answer of a model, and nothing else, takes so long."""
    slow = {"match": {"path": "/api/chat"}, "do": "stall", "seconds": chat_seconds, "times": 10**6}
    with tempfile.TemporaryFile("w+") as err, tempfile.NamedTemporaryFile("w", suffix=".json") as faults:
        json.dump([slow] if chat_seconds else [], faults)
        faults.flush()
        with Path(os.devnull).open("rb") as nothing:
            inherits = nothing.fileno(), None, err.fileno()
            process = ForkedCommand(
                ["emulator", "--port", "0", "--faults", faults.name, *arguments], os.environ, *inherits
            )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = EmulatorAddress(next(word for word in line.split() if word.startswith("http://")))
            found.pid = process.pid
            yield found
        finally:
            process.terminate()
            process.wait(timeout=10)
            process.stdout.close()


def as_answered(mission: Mapping[str, Any]) -> dict[str, Any]:
    """A mission without what is learnt of it when its answer is out."""
    cost = {name: value for name, value in mission["cost"].items() if name != "learning"}
    provenance = {name: value for name, value in mission["provenance"].items() if name != "generated"}
    return {**mission, "cost": cost, "provenance": provenance}


def texts(events: Sequence[Mapping[str, Any]], name: str) -> str:
    """The texts of all events of a name, joined."""
    return "".join(str(event["text"]) for event in events if event.get("event") == name)
