"""The emulator against recordings of a real daemon: bench/wire.py finds no difference in any exchange."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "ollama-wire"
LIMITS = {
    "OLLAMA_MAX_QUEUE": "1",
    "OLLAMA_NUM_PARALLEL": "2",
    "OLLAMA_MAX_LOADED_MODELS": "1",
    "OLLAMA_CONTEXT_LENGTH": "256",
    "OLLAMA_KEEP_ALIVE": "2s",
}


def replayed(name: str, environ: dict[str, str], *flags: str, seconds: float = 55) -> dict[str, Any]:
    """What the bench says of one recording."""
    command = [sys.executable, str(ROOT / "bench" / "wire.py"), "--exchanges", str(CORPUS / name), *flags]
    command += [part for item in environ.items() for part in ("--env", "=".join(item))]
    environment = {key: text for key, text in os.environ.items() if key != "BATOS_LIVE_OLLAMA"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_recorded_exchange_is_answered_alike() -> None:
    """Every exchange of a small daemon, sent as slowly as it was recorded, gives the recorded reply.

    What depends on which request comes while another is under way needs that. The recording of a plain daemon is what
    bench/wire.py replays by itself: tests/bench/test_shapes.py looks at every exchange of that.
    """
    found = replayed("limits.jsonl", LIMITS, "--speed", "1")
    assert found["differences"] == []
    assert found["unreplayable"] == []
    assert (found["exchanges"], found["agreement"]) == (18, 1.0)


@pytest.mark.live
@pytest.mark.timeout(960)
async def test_a_real_daemon_answers_as_it_was_recorded() -> None:
    """The same holds of a real daemon with an empty store; what can only be injected is counted as left out."""
    url = os.environ["BATOS_LIVE_OLLAMA"]
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        if (await http.get("/api/tags")).json()["models"]:
            pytest.skip("the daemon has models, which a replay would overwrite")
    found = await asyncio.to_thread(replayed, "exchanges.jsonl", {}, "--url", url, seconds=900)
    assert found["differences"] == []
    assert {one["scenario"] for one in found["unreplayable"]} <= {"faults"}
