"""The emulator against recordings of a real daemon: what bench/wire.py replays differs in no exchange."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.inference.still_clock import on_still_clock, pass_time
from tests.ollama_emulator.clients import started
from tests.waiting import HANG

import wire
from ollama_emulator.library.store import IN_MEMORY
from wire_daemon import Daemon
from wire_exchange import Exchange, Recording
from wire_replay import Replay

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "ollama-wire"
LIMITS = {
    "OLLAMA_MAX_QUEUE": "1",
    "OLLAMA_NUM_PARALLEL": "2",
    "OLLAMA_MAX_LOADED_MODELS": "1",
    "OLLAMA_CONTEXT_LENGTH": "256",
    "OLLAMA_KEEP_ALIVE": "2s",
}


def replayed(name: str, environ: dict[str, str], *flags: str, seconds: float = HANG) -> dict[str, Any]:
    """What the bench says of one recording."""
    command = [sys.executable, str(ROOT / "bench" / "wire.py"), "--exchanges", str(CORPUS / name), *flags]
    command += [part for item in environ.items() for part in ("--env", "=".join(item))]
    environment = {key: text for key, text in os.environ.items() if key != "BATOS_LIVE_OLLAMA"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class LoopClock:
    """The loop's clock, which the test moves; it begins now."""

    def __init__(self) -> None:
        self._began_ns = time.time_ns()

    def now_ns(self) -> int:
        """What the loop's clock shows, since it was made."""
        return self._began_ns + int(asyncio.get_running_loop().time() * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Sleep on the loop."""
        await asyncio.sleep(seconds)


class WaitingReplay(Replay):
    """A replay that asks for what is loaded no sooner than the last keep-alive is over, where it was so recorded."""

    async def _prepare(self, one: Exchange, batch: Sequence[Exchange]) -> None:
        await super()._prepare(one, batch)
        if one.note == "keep-alive over":
            await asyncio.sleep(3)  # any pace: the test moves the clock


@on_still_clock
async def test_every_recorded_exchange_is_answered_alike() -> None:
    """Every exchange of a small daemon, sent as slowly as it was recorded, gives the recorded reply.

    What depends on which request comes while another is under way needs that. The clock goes on by two milliseconds
    when everybody had his turns: it is as slow as the machine. The recording of a plain daemon is what bench/wire.py
    replays by itself: tests/bench/test_shapes.py looks at every exchange of that.
    """
    recording = Recording.read(CORPUS / "limits.jsonl", CORPUS / "models")
    speeds = {"load_s": recording.load_seconds(), "tok_s": recording.tokens_per_second()}
    async with started(LoopClock(), models=(), environ=LIMITS, vram=0, endless=True, control=True, **speeds) as client:
        daemon = Daemon(client.http, IN_MEMORY, emulated=True)
        replaying = asyncio.create_task(WaitingReplay(daemon, recording).run())
        while not replaying.done():
            await pass_time(0.002)
        found = wire.document(await replaying)
    assert found["differences"] == []
    assert found["unreplayable"] == []
    assert (found["exchanges"], found["agreement"]) == (18, 1.0)


@pytest.mark.live
@pytest.mark.timeout(960)  # any pace: more than the suite has, for a person's daemon
async def test_a_real_daemon_answers_as_it_was_recorded() -> None:
    """The same holds of a real daemon with an empty store; what can only be injected is counted as left out."""
    url = os.environ["BATOS_LIVE_OLLAMA"]
    async with httpx.AsyncClient(base_url=url, timeout=HANG, trust_env=False) as http:
        if (await http.get("/api/tags")).json()["models"]:
            pytest.skip("the daemon has models, which a replay would overwrite")
    found = await asyncio.to_thread(replayed, "exchanges.jsonl", {}, "--url", url, seconds=900)
    assert found["differences"] == []
    assert {one["scenario"] for one in found["unreplayable"]} <= {"faults"}
