"""The null server as a process that a bench starts, asks for its counts and stops."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import urlopen

_SCRIPT = Path(__file__).with_name("null_server.py")


@dataclass(frozen=True, slots=True)
class NullProcess:
    """A running null server."""

    url: str

    @classmethod
    @asynccontextmanager
    async def running(cls, replies: Path, latency_ms: float = 0.0) -> AsyncIterator[Self]:
        """Start the server, and stop it at the end."""
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
        """Return the server's calls and its CPU so far."""
        found: dict[str, Any] = await self._get("/_stats")
        return found

    async def recorded_bodies(self) -> list[dict[str, Any]]:
        """Return the bodies of the last chat calls, oldest first."""
        found: list[dict[str, Any]] = await self._get("/_recorded")
        return found

    async def own_cost(self, bodies: Sequence[Mapping[str, Any]], times: int) -> float:
        """Measure the server's own CPU a call in milliseconds: streamed calls over one connection, one by one."""
        address = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        before = await self.stats()
        for _ in range(times):
            for body in bodies:
                data = json.dumps({**body, "stream": True}, separators=(",", ":")).encode()
                writer.write(b"POST /api/chat HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
                await reader.readuntil(b"\r\n0\r\n\r\n")
        after = await self.stats()
        writer.close()
        await writer.wait_closed()
        made = after["calls"] - before["calls"]
        return float(round(1000 * (after["cpu_seconds"] - before["cpu_seconds"]) / made, 4))

    async def _get(self, path: str) -> Any:
        def read() -> Any:
            with urlopen(self.url + path, timeout=10) as reply:  # noqa: S310 - our own process on loopback
                return json.load(reply)

        return await asyncio.to_thread(read)
