"""An emulator within the test's process and a client of it, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.waiting import HANG

from ollama_emulator.clocks import Clock, ManualClock
from ollama_emulator.emulator import Emulator, Options

CHAT_MODEL = "llama3.2:3b"
EMBEDDER = "all-minilm:latest"
#: Rounds of the loop in which what wakes at a time is written, sent and read.
_ROUNDS = 30


@dataclass(slots=True)
class Client:
    """An emulator within this process and a client of it."""

    emulator: Emulator
    http: httpx.AsyncClient
    url: str

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """POST a JSON body made of the fields."""
        return await self.http.post(path, json=fields)

    async def chat(self, text: str = "What is water?", **fields: Any) -> dict[str, Any]:
        """A whole chat reply, which has to be 200."""
        body = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": text}], "stream": False, **fields}
        reply = await self.http.post("/api/chat", json=body)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    async def lines(self, path: str, **fields: Any) -> list[dict[str, Any]]:
        """The lines of a streamed reply."""
        reply = await self.http.post(path, json=fields)
        return [json.loads(line) for line in reply.text.splitlines()]

    async def ps(self) -> list[dict[str, Any]]:
        """What the daemon says is loaded."""
        rows: list[dict[str, Any]] = (await self.http.get("/api/ps")).json()["models"]
        return rows


Start = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def started(clock: Clock | None = None, **options: Any) -> AsyncIterator[Client]:
    settings = {"models": (CHAT_MODEL, EMBEDDER), **options}
    emulator = Emulator(Options(**settings), clock)
    async with (
        emulator.serving() as url,
        # a client that verifies loads the system's certificates: 50 ms of CPU for nothing here
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=HANG, verify=False) as http,
    ):
        yield Client(emulator, http, url)


async def pass_time(clock: ManualClock, *tasks: asyncio.Task[Any], step: float = 1.0) -> None:
    """Let the emulator's time pass until the tasks are done, in steps, each of which has time to take effect."""
    while not all(task.done() for task in tasks):
        clock.advance(step)
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
