"""The null server as a process that a bench starts, asks for its counts and stops."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

_SCRIPT = Path(__file__).with_name("null_server.py")


@dataclass(frozen=True, slots=True)
class NullProcess:
    """One running null server."""

    url: str

    @classmethod
    @asynccontextmanager
    async def running(cls, replies: Path, latency_ms: float = 0.0) -> AsyncIterator[Self]:
        """Starts it, and stops it at the end."""
        arguments = [str(_SCRIPT), "--replies", str(replies), "--latency-ms", str(latency_ms)]
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            first = await process.stdout.readline()
            yield cls(json.loads(first)["url"])
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    async def stats(self) -> dict[str, Any]:
        """Its calls and its CPU so far."""
        found: dict[str, Any] = await self._get("/_stats")
        return found

    async def recorded(self) -> list[dict[str, Any]]:
        """The bodies of the last chat calls, oldest first."""
        found: list[dict[str, Any]] = await self._get("/_recorded")
        return found

    async def _get(self, path: str) -> Any:
        def read() -> Any:
            with urlopen(self.url + path, timeout=10) as reply:  # noqa: S310 - our own process on loopback
                return json.load(reply)

        return await asyncio.to_thread(read)
