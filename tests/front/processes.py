"""Running `batos` as its users do: as processes, through pipes, with a home of their own.

Most of a short run is the reading of modules, so `User.run` asks a process that has read them (stem.py) to fork; a run
whose streams or interpreter are special, and every run of a `fresh` user, is started from nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATOS = (sys.executable, "-m", "batos")
HERE = Path(__file__).parent
#: An emulator that knows the models of a home whose genesis is done.
WITH_MODELS = ("--model", "llama3.1:8b-instruct-q4_K_M", "--model", "all-minilm:latest")


class Stem:
    """The process of stem.py, started when it is first asked for."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="batos-stem-"))
            command = [sys.executable, str(HERE / "stem.py"), str(self._folder / "s")]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self._folder, start_new_session=True
            )
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == b"ready\n"
        return str(self._folder / "s")

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate(timeout=10)
        if self._folder is not None:
            shutil.rmtree(self._folder)


#: This test process's own; conftest.py ends it.
STEM = Stem()


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished process."""

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
    fresh: bool = False

    def environ(self) -> dict[str, str]:
        """The environment of what this user runs; the loop is watched."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
        return {**kept, "BATOS_HOME": str(self.home), "OLLAMA_HOST": self.ollama, "BATOS_DEBUG_LOOP": "1"}

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        """A process that runs on."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen([*BATOS, *arguments], text=True, env=self.environ(), **{**pipes, **more})

    def run(
        self, *arguments: str, stdin: str | None = None, environ: Mapping[str, str] | None = None, shell: str = ""
    ) -> Ran:
        """A process until its end; `shell` says what a shell does to its streams, as `>&-`."""
        through = ("sh", "-c", f'exec "$@" {shell}', "sh") if shell else ()
        special = any(name.startswith(("PYTHON", "LC_", "LANG", "TZ")) for name in environ or {})
        forks = not (shell or special or self.fresh)
        batos = (sys.executable, "-I", "-S", str(HERE / "asking.py"), STEM.address) if forks else BATOS
        done = subprocess.run(
            [*through, *batos, *arguments],
            text=True,
            env={**self.environ(), **(environ or {})},
            capture_output=True,
            input=stdin if stdin is not None else "",
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


class Emulated(str):
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
def emulator(*arguments: str) -> Iterator[Emulated]:
    """`batos emulator` as a process; gives its address."""
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [*BATOS, "emulator", "--port", "0", *arguments], text=True, stdout=subprocess.PIPE, stderr=err
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = Emulated(next(word for word in line.split() if word.startswith("http://")))
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
