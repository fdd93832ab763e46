"""A web of stub sites on loopback: names resolve to public addresses, and connections lead to one small server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from batos.agency.look_ups.page_fetching import CheckedConnection, Fetcher, FetchLimits

#: What a site answers: a path and headers become raw bytes of HTTP.
Site = Callable[[str, Mapping[str, str]], bytes]
PUBLIC = "93.184.215.14"


def reply(body: bytes | str, media: str = "text/html; charset=utf-8", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}"]
    lines += [f"Content-Type: {media}"] if media else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def moved(location: str) -> bytes:
    """A redirection."""
    return reply("", status="302 Found", Location=location)


@dataclass
class StubWeb:
    """The sites by `host` or `host:port`, what was asked, and where names lead."""

    sites: dict[str, Site] = field(default_factory=dict)
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    #: Where a connection is said to lead, in the place of where it was made to.
    peer: str = ""
    at_once: int = 0
    most_at_once: int = 0
    port: int = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name."""
        self.resolved.append(host)
        found = self.names.get(host, [PUBLIC])
        if callable(found):
            return list(found())
        return found

    async def connect(self, ip: str, port: int, name: str) -> CheckedConnection:
        """A connection to the stub server, whatever address is asked for."""
        self.connected.append(ip)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return CheckedConnection(reader, writer, self.peer or ip)

    def fetcher(self, **changes: float) -> Fetcher:
        """A fetcher in this web."""
        return Fetcher("batos/0 (test)", self.resolve, self.connect, FetchLimits(**changes))  # type: ignore[arg-type]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name
            }
            target, host = head[0].split(" ")[1], headers["host"]
            self.asked.append(f"{host}{target}")
            self.headers.append(headers)
            site = self.sites.get(host)
            writer.write(reply("no such site", status="404 Not Found") if site is None else site(target, headers))
            await asyncio.sleep(0)
            await writer.drain()
        self.at_once -= 1
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def stub_web(sites: Mapping[str, Site], **changes: object) -> AsyncIterator[StubWeb]:
    """A web with these sites."""
    web = StubWeb(dict(sites), **changes)  # type: ignore[arg-type]
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web
