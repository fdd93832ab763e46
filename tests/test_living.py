"""The suite for a real Ollama, run on an emulator: it finds a model by itself, and says how many tests ran."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.living import found_model
from tests.ollama_emulator.recordings import CHATML, MODELS
from tests.waiting import HANG

from batos.inference.ollama.bridge import Bridge
from ollama_emulator.emulator import Emulator, Options

ROOT = Path(__file__).resolve().parents[1]


async def test_the_smallest_model_that_writes_is_found() -> None:
    """Embedders do not write; a name that a person gives goes before; a daemon without any fails the test."""
    models = ("llama3.1:8b-instruct-q4_K_M", "all-minilm:latest", "llama3.2:3b-instruct-q4_K_M")
    async with Emulator(Options(models=models)).serving() as url, Bridge(url) as bridge:
        assert await found_model(bridge) == "llama3.2:3b-instruct-q4_K_M"
        assert await found_model(bridge, "mine:1b") == "mine:1b"
    async with Emulator().serving() as url, Bridge(url) as bridge:
        with pytest.raises(pytest.fail.Exception, match="ollama pull"):
            await found_model(bridge)


async def given(url: str, weights: Path) -> None:
    """A model of these weights, with a template for talks."""
    async with Bridge(url) as bridge, httpx.AsyncClient(base_url=url, trust_env=False) as http:
        digest = await bridge.upload_blob(weights)
        fields = {"model": "tiny", "files": {weights.name: digest}, "template": CHATML, "stream": False}
        (await http.post("/api/create", json=fields)).raise_for_status()


def live(url: str, *which: str) -> subprocess.CompletedProcess[str]:
    """`make live` for some of its tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "live", *which]
    environ = {**os.environ, "BATOS_LIVE_OLLAMA": url, "BATOS_LIVE_MODEL": ""}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environ, timeout=HANG)


async def test_it_runs_genesis_missions_and_adapters() -> None:
    """Every test runs, each with a model that is good for it, that is said, and nothing is left behind."""
    async with Emulator(Options(models=("llama3.2:3b-instruct-q4_K_M",))).serving() as url:
        await given(url, MODELS / "tiny-a.gguf")
        done = await asyncio.to_thread(live, url, "tests/test_live.py", "tests/inference/test_live.py")
        async with Bridge(url) as bridge:
            left = {row.name for row in await bridge.list()}
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"live: 5 ran and 0 were left out, on {url} with the smallest that will do" in done.stdout
    assert left == {"llama3.2:3b-instruct-q4_K_M", "tiny:latest"}, "what was made there is deleted"


def test_a_suite_that_ran_nothing_has_failed() -> None:
    """Where every test was left out, or none is there, the exit code says so."""
    done = live("http://127.0.0.1:9", "tests/test_notation.py")
    assert done.returncode == 1
    assert "live: 0 ran and 0 were left out" in done.stdout
