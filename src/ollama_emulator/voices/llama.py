"""A model that llama.cpp runs in this process, by the package xllamacpp: its weights, its slots, its prompt cache.

The package is imported when a model is loaded, and nowhere else. Loads, answers and vectors run in threads.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollama_emulator.emulator_errors import ApiError

if TYPE_CHECKING:
    import xllamacpp

_FAILED = "llama-server process has terminated: exit status 1"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of a load: the file, the window in tokens of each slot, and the threads (0: half of the cores)."""

    path: Path
    window: int
    slots: int = 1
    threads: int = 0
    shift: bool = True
    embeds: bool = False


class LlamaEngine:
    """A loaded model. As many answers run at once as the model has slots; others wait."""

    def __init__(self, server: xllamacpp.Server, slots: int) -> None:
        self._server: xllamacpp.Server | None = server
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="llama")

    @classmethod
    async def load(cls, settings: EngineSettings) -> LlamaEngine:
        """Load a model in a thread. Raises: ApiError: 500, llama.cpp cannot load the file."""
        return cls(await asyncio.to_thread(open_server, settings), settings.slots)

    async def complete(self, asked: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the chunks of a completion as they come. Closing the generator stops the model at its next token."""
        loop, chunks, stop = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None](), threading.Event()

        def on_chunk(chunk: dict[str, Any]) -> bool:
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return stop.is_set()

        def run() -> None:
            try:
                self._alive.handle_completions(asked, on_chunk)
            finally:
                loop.call_soon_threadsafe(chunks.put_nowait, None)

        done = loop.run_in_executor(self._threads, run)
        try:
            while (chunk := await chunks.get()) is not None:
                yield chunk
            await done
        finally:
            stop.set()
            await asyncio.wait([done])  # the slot is free only when the model has stopped

    async def embed(self, text: str | Sequence[int]) -> list[float]:
        """Return the vector of a text or of token ids. Raises: ApiError: 500, llama.cpp refuses them."""
        asked = {"input": text if isinstance(text, str) else list(text)}
        loop = asyncio.get_running_loop()
        reply = await loop.run_in_executor(self._threads, lambda: self._alive.handle_embeddings(asked))
        rows = reply.get("data")
        if not rows:
            raise ApiError(500, str(reply.get("error", reply)))
        return [float(value) for value in rows[0]["embedding"]]

    async def close(self) -> None:
        """Wait for the answers in progress to stop, and free the memory."""
        await asyncio.to_thread(self._free)

    @property
    def _alive(self) -> xllamacpp.Server:
        if self._server is None:
            raise ApiError(500, _FAILED)
        return self._server

    def _free(self) -> None:
        self._threads.shutdown()
        self._server = None


def open_server(settings: EngineSettings) -> xllamacpp.Server:
    """Load a model. Raises: ApiError: 500, llama.cpp cannot load the file."""
    library = import_module("xllamacpp")
    params: xllamacpp.CommonParams = library.CommonParams()
    params.model.path = str(settings.path)
    params.n_ctx = settings.window * settings.slots
    params.n_parallel = settings.slots
    params.ctx_shift = settings.shift
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads or default_threads()
    params.embedding = settings.embeds
    if settings.embeds:  # a text is one batch
        params.n_batch = params.n_ubatch = settings.window
    params.endpoint_metrics = True
    params.cache_ram_mib = 0  # the slots cache prompts; no copies of them beside
    params.fit_params = params.ui = params.warmup = False
    params.verbosity = -1
    # Its HTTP server cannot be turned off. A socket that is unlinked at once leaves it without a door; the key is for
    # the moment before.
    with tempfile.TemporaryDirectory(prefix="ollama-emulator-") as folder:
        params.hostnames = [f"{folder}/llama.sock"]
        params.api_keys = [secrets.token_urlsafe(32)]
        try:
            server: xllamacpp.Server = library.Server(params)
            # Its loop answers this. A server that is freed before its loop began would wait for it for ever.
            server.handle_metrics()
        except RuntimeError:
            raise ApiError(500, _FAILED) from None
    return server


def default_threads() -> int:
    """Return the threads of a model if a request names none: half of the cores, since threads that wait spin."""
    return max(1, (os.cpu_count() or 1) // 2)
