"""Geneses as processes that are killed: forked from one that has everything imported, so that many take no time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from tests.genesis.short_codex import short_codex
from tests.image.open_image import open_image
from tests.inference.conftest import PATIENT
from tests.waiting import HANG, wait_until

from batos.cli import entry
from batos.config import Settings
from batos.events import Events
from batos.genesis import persona_models
from batos.genesis.adapters import repository
from batos.image.filestorage import SoundFileStorage
from batos.image.image import Opening
from batos.inference.ollama.bridge import Bridge
from batos.uvm import Seams, open_uvm

#: Small models under the names that the codex has, so that an adapter of the tests fits the base.
REGISTRY: dict[str, Any] = {
    "only": True,
    "models": [
        {"name": "llama3.1:8b-instruct-q4_K_M", "size": 600_000, "window": 8_192},
        {"name": "all-minilm:latest", "architecture": "bert", "size": 460_000, "template": "", "embeds": True},
    ],
}


#: What lets a verb wait for a daemon as long as that takes.
PATIENCE = {f"BATOS_{name}_SECONDS": "3600" for name in ("CONNECT", "BETWEEN_TOKENS", "FIRST_TOKEN")}


def run_verb(arguments: list[str], environ: Mapping[str, str], out: Path) -> None:
    """A `batos` command in a process of its own; both streams go to a file."""
    for name in [name for name in os.environ if name.startswith(("BATOS_", "OLLAMA_"))]:
        del os.environ[name]
    os.environ.update(environ)
    _speak_into(out)
    entry.main(arguments)


def _speak_into(out: Path) -> None:
    into = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(into, 1)
    os.dup2(into, 2)


def run_dying(home: Path, url: str, nth: int, out: Path, after: bool) -> None:
    """A genesis that kills itself at the image's commit number `nth`: before it is written, or after."""
    _speak_into(out)
    commits = 0

    class Storage(SoundFileStorage):
        def tpc_finish(self, *given: Any) -> Any:
            nonlocal commits
            commits += 1
            if commits == nth and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            finished = super().tpc_finish(*given)
            if commits == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return finished

    def opening(found: Opening) -> Opening:
        return replace(found, image_factory=lambda: Storage(str(home / "live_image.fs"), blob_dir=str(home / "blobs")))

    async def genesis() -> None:
        settings = Settings(home=home, user="tester", ollama_host=url)
        async with (
            Bridge(url, deadlines=PATIENT) as bridge,
            open_uvm(settings, Events(log=False), Seams(bridge=bridge, opening=opening)) as uvm,
        ):
            # Not the router's lesson: how many commits that takes is a matter of time (tests of `saved` have it).
            await uvm.reconciler.run()

    home.mkdir(exist_ok=True)
    asyncio.run(genesis())


@dataclass(frozen=True, slots=True)
class World:
    """A home, and an emulator that runs as a process with its log and its store in files."""

    folder: Path
    url: str
    context: ForkServerContext

    @property
    def home(self) -> Path:
        """The home."""
        return self.folder / "home"

    @property
    def out(self) -> Path:
        """What every genesis said on its two streams."""
        return self.folder / "out"

    def genesis(self, *arguments: str) -> ForkServerProcess:
        """`batos genesis`, begun."""
        environ = {**PATIENCE, "BATOS_HOME": str(self.home), "OLLAMA_HOST": self.url, "BATOS_DEBUG_LOOP": "0"}
        given = (["genesis", "--json", *arguments], environ, self.out)
        return _started(self.context, run_verb, given)

    def ran(self, *arguments: str, **settings: str) -> tuple[int | None, list[dict[str, Any]]]:
        """Any verb to its end: its exit code, and each line that it wrote as JSON."""
        out = self.folder / f"out-{len(list(self.folder.glob('out-*')))}"
        environ = {**PATIENCE, "BATOS_HOME": str(self.home), "OLLAMA_HOST": self.url, **settings}
        process = _started(self.context, run_verb, ([*arguments, "--json"], environ, out))
        process.join(HANG)
        text = _said(out)
        try:
            return process.exitcode, [json.loads(line) for line in text.splitlines()]
        except ValueError as wrong:
            raise AssertionError(f"it ended with {process.exitcode}: {text}") from wrong

    def died(self, nth: int, *, after: bool) -> None:
        """A genesis that kills itself at a commit of the image."""
        process = _started(self.context, run_dying, (self.home, self.url, nth, self.out, after))
        process.join(HANG)
        assert process.exitcode == -signal.SIGKILL, f"it ended with {process.exitcode}: {_said(self.out)}"

    def converged(self, *arguments: str) -> dict[str, Any]:
        """A genesis to its end, which must be good; what it reported."""
        process = self.genesis(*arguments)
        process.join(HANG)
        out = _said(self.out)
        assert process.exitcode == 0, f"it ended with {process.exitcode}: {out}"
        document = json.loads(out.splitlines()[-1])
        assert document["ok"], document
        found: dict[str, Any] = document["data"]
        return found

    def requests(self) -> list[dict[str, Any]]:
        """What the emulator was asked, oldest first."""
        log = self.folder / "log"
        return [json.loads(line) for line in _said(log).splitlines(keepends=True) if line.endswith("\n")]

    def killed_in(self, path: str) -> None:
        """A genesis that is killed while the emulator, which stalls, answers a request of this path."""
        process = self.genesis()

        def is_asked() -> bool:
            assert process.is_alive(), f"it ended with {process.exitcode} before {path}: {_said(self.out)}"
            return any(each["path"] == path for each in self.requests())

        wait_until(is_asked, path)
        process.kill()
        process.join(HANG)
        assert process.exitcode == -signal.SIGKILL, f"it ended with {process.exitcode}: {_said(self.out)}"

    def store(self) -> dict[str, Any]:
        """What the daemon holds: the digest of each model, which names its layers, and the blobs that are there."""
        with urllib.request.urlopen(f"{self.url}/api/tags") as reply:
            tags = {row["name"]: row["digest"] for row in json.load(reply)["models"]}
        blobs = {path.name for path in (self.folder / "store" / "blobs").iterdir() if path.name.startswith("sha256")}
        return {"tags": tags, "blobs": blobs}


async def image_of(home: Path) -> dict[str, Any]:
    """What the image in a home holds of genesis, without times."""
    async with open_image(home) as image:
        with image.snapshot() as root:
            known = persona_models.read_record(root)
            models = {name: {**asdict(made), "at": ""} for name, made in known.models.items()}
            audit = persona_models.last_audit(root)
            assert audit is not None
            return {
                "codex": known.codex_digest,
                "used": dict(known.used),
                "models": models,
                "adapters": repository.proxies(root),
                "audit": audit["findings"],
            }


def _said(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _started(context: ForkServerContext, target: Callable[..., None], given: tuple[Any, ...]) -> ForkServerProcess:
    process = context.Process(target=target, args=given, daemon=True)
    process.start()
    return process


@contextmanager
def world(folder: Path, context: ForkServerContext, *arguments: str, **files: Any) -> Iterator[World]:
    """A home with a short codex and an emulator with an empty store; `registry` and `faults` are what that is given."""
    folder.mkdir(exist_ok=True)
    short_codex(folder / "home")
    told = list(arguments)
    for name, content in {"registry": REGISTRY, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        told += [f"--{name}", str(folder / f"{name}.json")]
    with daemon(folder, context, *told) as (url, _):
        yield World(folder, url, context)


@contextmanager
def daemon(folder: Path, context: ForkServerContext, *arguments: str) -> Iterator[tuple[str, ForkServerProcess]]:
    """An emulator with its log and its store in the folder: its address, and the process to be killed."""
    said = folder / f"said-{len(list(folder.glob('said-*')))}"
    given = ["emulator", "--port", "0", "--log", str(folder / "log"), "--store", str(folder / "store"), *arguments]
    process = _started(context, run_verb, (given, {}, said))
    try:
        yield wait_until(lambda: _address(process, said), "the emulator's address"), process
    finally:
        process.terminate()
        process.join(HANG)


def _address(process: ForkServerProcess, said: Path) -> str:
    """The address that an emulator said, "" before."""
    alive, text = process.is_alive(), _said(said)
    for line in text.splitlines(keepends=True):
        for word in line.split():
            if word.startswith("http") and line.endswith("\n"):
                return word
    assert alive, f"it ended with {process.exitcode}: {text}"
    return ""
