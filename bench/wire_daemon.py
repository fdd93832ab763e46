"""The daemon that a recording is replayed against: the emulator as a process, or one that a URL names."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ollama_emulator.library.store import IN_MEMORY
from wire_exchange import Recording

_START_S = 30.0


@dataclass(slots=True)
class Daemon:
    """A daemon to talk to; `root` is its store's path where that is known, `emulated` that faults can be injected.

    Where it is emulated, its loads take `load_s` and it says `tok_s` tokens a second.
    """

    http: httpx.AsyncClient
    root: str | None = None
    emulated: bool = False

    async def inject(self, fault: Mapping[str, Any]) -> None:
        """Order a fault of the emulator; AssertionError where it knows no such fault."""
        reply = await self.http.post("/_emulator/fault", json=fault)
        assert reply.status_code == 200, f"{fault} is refused: {reply.text}"

    async def clear(self) -> None:
        """Take back what was ordered and did not come to pass."""
        await self.http.delete("/_emulator/fault")


@asynccontextmanager
async def emulator(recording: Recording, environ: Mapping[str, str], speed: float) -> AsyncIterator[Daemon]:
    """Run the emulator as a process in the recorded daemon's state: an empty store, no GPU, no network, its speed."""
    with tempfile.TemporaryDirectory(prefix="batos-wire-") as folder:
        offline = Path(folder) / "registry.json"
        await asyncio.to_thread(offline.write_text, json.dumps({"only": True, "offline": True}), "utf-8")
        flags = ["--port", "0", "--control", "--vram", "0", "--endless", "--registry", str(offline)]
        flags += [
            "--load-s",
            str(recording.load_seconds() / speed),
            "--tok-s",
            str(recording.tokens_per_second() * speed),
        ]
        said = recording.version()
        if said is not None:
            flags += ["--speaks-as", said]
        async with _process(flags, environ) as url, _client(url) as http:
            yield Daemon(http, IN_MEMORY, emulated=True)


@asynccontextmanager
async def live(url: str) -> AsyncIterator[Daemon]:
    """Use a daemon that runs already. ValueError unless its store is empty: a replay makes and deletes models."""
    async with _client(url.rstrip("/")) as http:
        reply = await http.get("/api/tags")
        if reply.json()["models"]:
            raise ValueError(f"the daemon at {url} has models: a replay would overwrite some; give one an empty store")
        yield Daemon(http)


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=256)
    # a client that verifies loads the system's certificates, for nothing here
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False, limits=limits) as http:  # noqa: S501
        yield http


@asynccontextmanager
async def _process(flags: list[str], environ: Mapping[str, str]) -> AsyncIterator[str]:
    own = {name: text for name, text in os.environ.items() if not name.startswith("OLLAMA_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "batos", "emulator", *flags, stdout=asyncio.subprocess.PIPE, env={**own, **environ}
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            first = (await process.stdout.readline()).decode()
        if "http://" not in first:
            raise OSError(f"the emulator did not start: {first!r}, exit {await process.wait()}")
        yield first.split("listening on ")[1].split()[0]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
