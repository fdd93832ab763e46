"""Run the emulator as a process, `await serve(Options())`, or in one, `async with Emulator().serving() as url`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ollama_emulator.api import routes
from ollama_emulator.api.pull import install
from ollama_emulator.clocks import Clock
from ollama_emulator.daemon import EmulatedDaemon
from ollama_emulator.emulator_errors import ApiError, OptionError
from ollama_emulator.faults import FaultList
from ollama_emulator.http.http_server import HttpServer
from ollama_emulator.library.model_tags import parse
from ollama_emulator.library.store import Store
from ollama_emulator.machine.scheduler import Scheduler
from ollama_emulator.options import DEFAULT_PORT, Options, process_environ

__all__ = ["DEFAULT_PORT", "Emulator", "Options", "serve"]
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Emulator:
    """An emulated daemon with its HTTP server.

    Raises: OptionError: an option is invalid, a file is unreadable, or the host is not this machine.
    """

    def __init__(self, options: Options | None = None, clock: Clock | None = None) -> None:
        self.options = options or Options()
        if self.options.host not in _LOOPBACK:
            raise OptionError(
                "the emulator asks nobody for a token, so it listens on loopback only",
                field="host",
                remedy="Use 127.0.0.1, ::1 or localhost.",
            )
        self.daemon = EmulatedDaemon.create(self.options, clock)
        self._server = HttpServer(partial(routes.handle, self.daemon), routes.streams, self.options.limits)
        for text in self.options.models:
            name = parse(text)
            try:
                if name is None:
                    raise ApiError(400, "invalid model name")
                install(self.daemon, name)
            except ApiError as fault:
                raise OptionError(f"the model {text!r} cannot be there: {fault}", field="models") from None

    @property
    def requests(self) -> deque[dict[str, Any]]:
        """Return the requests so far, oldest first, as dicts of n, time, method, path, model, body and status."""
        return self.daemon.requests

    @property
    def faults(self) -> FaultList:
        """Return the faults in force; `.add({...})` adds one."""
        return self.daemon.faults

    @property
    def store(self) -> Store:
        """Return the models and blobs."""
        return self.daemon.store

    @property
    def scheduler(self) -> Scheduler:
        """Return the scheduler of the loaded models; its `loads` counts the loads so far."""
        return self.daemon.scheduler

    @property
    def notice(self) -> str:
        """Return the words that say what answers: invented words, or a real model and its size."""
        return self.daemon.notice

    @property
    def connections(self) -> int:
        """Return the number of connected clients."""
        return self._server.connections

    @property
    def body_bytes(self) -> int:
        """Return the bytes of request bodies in memory."""
        return self._server.body_bytes

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve until the block ends; yield the base address, without a slash at its end.

        Raises: OSError: the port is taken.
        """
        server = self._server
        port = await server.listen(self.options.host, self.options.port)
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        try:
            yield f"http://{host}:{port}"
        finally:
            await server.close()
            await self.scheduler.free()
            self.daemon.close()


async def serve(options: Options) -> int:
    """Serve until SIGINT or SIGTERM and return 0. A line on standard output says when connections are accepted.

    Raises: OptionError: an option is invalid, or the address is taken.
    """
    if options.environ is None:
        options = replace(options, environ=process_environ())
    emulator = Emulator(options)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    for warning in emulator.daemon.settings.warnings:
        sys.stderr.write(f"emulator: {warning}\n")
    try:
        async with emulator.serving() as url:
            sys.stdout.write(f"emulator listening on {url} ({emulator.notice})\n")
            sys.stdout.flush()
            await stop.wait()
    except OSError as error:
        raise OptionError(
            f"port {options.port} of {options.host} cannot be used: {error.strerror}",
            field="port",
            remedy="Another daemon may be there; take another port, or --port 0.",
        ) from error
    return 0
