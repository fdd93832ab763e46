"""Emulators within the test's process that answer with a file of the recorded models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from tests.ollama_emulator.clients import Client
from tests.waiting import HANG

from ollama_emulator.emulator import Emulator, Options

MODELS = Path(__file__).resolve().parents[2] / "data" / "ollama-wire" / "models"


@asynccontextmanager
async def started_with(path: Path, environ: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """An emulator with a real model, made in a thread, since it reads the whole file.

    `environ` says where the cache is.
    """
    emulator = await asyncio.to_thread(Emulator, Options(gguf=path, environ=environ))
    async with (
        emulator.serving() as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=HANG, verify=False) as http,
    ):
        yield Client(emulator, http, url)
