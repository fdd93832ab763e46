"""Running `batos` as its users do, with a home of their own: by calling the command line, or as processes.

Most tests look at the output and the exit code alone: `User.run` calls, in this process. What a process alone has
(streams of the system's, an encoding, signals, an import that nobody did before) is looked at in one: `User.fork` is
forked (fork_server.py) and runs to its end, `User.start` is forked and runs on, `User.process` starts from nothing.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fork_server import ForkedCommand
from tests.waiting import HANG, wait_until

from batos.cli import entry
from batos.cli.command_line import Surroundings

BATOS = (sys.executable, "-m", "batos")
#: What a program waits for at most, in seconds: no test but one about such a limit is to meet it, at any pace.
PATIENT = {
    f"BATOS_{name}_SECONDS": "3600"
    for name in ("BUSY", "CONNECT", "LOAD", "FIRST_TOKEN", "BETWEEN_TOKENS", "PROGRESS", "GENERATION")
}
#: Seconds of a fault that lasts longer than any test.
FOR_EVER = 10**6
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
        own = {"BATOS_HOME": str(self.home), "OLLAMA_HOST": self.ollama, "BATOS_SERVER": "never", "BATOS_HTTP": "off"}
        return {**kept, **PATIENT, **own, "BATOS_DEBUG_LOOP": "1"}

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

    def fork(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        out: Path | None = None,
        err: Path | None = None,
    ) -> ProcessResult:
        """Run a forked process to its end, with nothing at stdin; its streams may be files instead of pipes."""
        with ExitStack() as stack:
            numbers = [
                None if path is None else stack.enter_context(path.open(mode)).fileno()
                for path, mode in ((Path(os.devnull), "rb"), (out, "wb"), (err, "wb"))
            ]
            process = ForkedCommand(arguments, {**self.environ(), **(environ or {})}, *numbers)
        said = process.communicate()
        return ProcessResult(process.returncode or 0, *said)

    def process(self, *arguments: str, environ: Mapping[str, str] | None = None, shell: str = "") -> ProcessResult:
        """Run a process to its end, with nothing at stdin; `shell` is what a shell does to its streams, as `>&-`."""
        through = ("sh", "-c", f'exec "$@" {shell}', "sh") if shell else ()
        done = subprocess.run(
            [*through, *BATOS, *arguments],
            text=True,
            env={**self.environ(), **(environ or {})},
            capture_output=True,
            input="",
            timeout=HANG,
            check=False,
        )
        return ProcessResult(done.returncode, done.stdout, done.stderr)


def held(after: int = 0, lines: int = 0) -> list[dict[str, Any]]:
    """Faults: so many questions are answered, and the others have so many lines of an answer and no end."""
    match = {"path": "/api/chat", "nth": after + 1}  # each fault counts what those before it let through
    return [{"match": match, "do": "stall", "after": lines, "seconds": FOR_EVER}] * 100


@contextmanager
def emulator(*arguments: str, faults: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    """`batos emulator` as a process; gives its address."""
    with tempfile.TemporaryFile("w+") as err, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(faults, file)
        file.flush()
        with Path(os.devnull).open("rb") as nothing:
            inherits = nothing.fileno(), None, err.fileno()
            process = ForkedCommand(
                ["emulator", "--port", "0", "--faults", file.name, *arguments], os.environ, *inherits
            )
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            if not words:
                code = process.wait()
                err.seek(0)
                raise AssertionError(f"the emulator ended with {code}: {err.read()}")
            yield next(word for word in words if word.startswith("http://"))
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def answers_kept(user: User) -> int:
    """How many answers of the newest mission are in the journal: one that is only on its way is lost by a kill."""
    shown = user.run("show", "last", "--prompts", "--json").document["data"]
    return sum(each["state"] == "done" and each["path"] != "route#0" for each in shown["prompts"])


def status_with_daemon(user: User) -> dict[str, Any]:
    """The status, looked at until the daemon answers in time for it: after 1.5 s it is told not to."""
    found = dict[str, Any]()

    def answers() -> bool:
        found.update(user.run("status", "--json").document["data"])
        return bool(found["ollama"]["answers"])

    wait_until(answers, "a status with the daemon's answer")
    return found


def as_answered(mission: Mapping[str, Any]) -> dict[str, Any]:
    """A mission without what is learnt of it when its answer is out."""
    cost = {name: value for name, value in mission["cost"].items() if name != "learning"}
    provenance = {name: value for name, value in mission["provenance"].items() if name != "generated"}
    return {**mission, "cost": cost, "provenance": provenance}


def texts(events: Sequence[Mapping[str, Any]], name: str) -> str:
    """The texts of all events of a name, joined."""
    return "".join(str(event["text"]) for event in events if event.get("event") == name)
