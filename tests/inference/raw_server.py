"""A raw socket server that plays scripts of bytes: what a daemon might do, written down, with no emulator between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

DATA = Path(__file__).parent.parent / "data" / "ollama-wire"
STAMP = "2026-11-21T14:32:37.176305271Z"


@dataclass(frozen=True, slots=True)
class RawRequest:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body, decoded."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


@dataclass(slots=True)
class RawServer:
    """Plays one script for each request, in order; the last is played again and again."""

    scripts: list[Script]
    url: str = ""
    asked: list[RawRequest] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    async def was_asked(self, times: int = 1) -> None:
        """Wait until so many requests came."""
        while len(self.asked) < times:
            self.came.clear()
            await self.came.wait()

    async def was_left(self) -> None:
        """Wait until somebody left whom it was made to wait for."""
        await self.left.wait()

    def play(self, *scripts: Script) -> None:
        """Begin anew with other scripts, and with nothing asked."""
        self.scripts[:] = scripts
        self.asked.clear()
        self.came.clear()
        self.left.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                self.came.set()
                script = self.scripts[min(len(self.asked), len(self.scripts)) - 1]
                if not await self._play(script, reader, writer):
                    break
        except ConnectionError:
            self.left.set()
        finally:
            writer.close()

    async def _play(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        for step in [script] if isinstance(script, (bytes, Do)) else script:
            if step is HOLD:
                await reader.read()
                self.left.set()
                return False
            if step is CLOSE:
                return False
            if step is RESET:
                writer.transport.abort()
                return False
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, asyncio.Event):
                await step.wait()
        return True


class Do(Enum):
    """What a server may do beside sending bytes."""

    WAIT_FOR_LEAVING = auto()
    CLOSE = auto()
    RESET = auto()


HOLD, CLOSE, RESET = Do.WAIT_FOR_LEAVING, Do.CLOSE, Do.RESET

#: Bytes to send, seconds or an event to wait for, or what to do.
Step: TypeAlias = bytes | float | asyncio.Event | Do
Script: TypeAlias = bytes | Do | Sequence[Step]


async def _read(reader: asyncio.StreamReader) -> RawRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return RawRequest(method, path, headers, body)


@asynccontextmanager
async def serving(*scripts: Script) -> AsyncIterator[RawServer]:
    """A server on a free port of the loopback."""
    raw = RawServer(list(scripts))
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        server.close()
        await asyncio.sleep(0)


def reply(body: bytes | dict[str, Any], status: int = 200, media: str = "application/json; charset=utf-8") -> bytes:
    """A whole reply."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def line(value: dict[str, Any] | bytes) -> bytes:
    """One line of a stream, in a chunk of its own, as the daemon sends it."""
    return chunk((value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n")


def token(text: str, **more: Any) -> bytes:
    """A line of a chat's stream."""
    return line({"model": "m", "created_at": STAMP, "message": {"role": "assistant", "content": text}, **more})


DONE = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 3_000_000_000,
    "load_duration": 1_000_000_000,
    "prompt_eval_count": 57,
    "eval_count": 8,
}


def spoken(*texts: str) -> tuple[Script, list[asyncio.Event]]:
    """A chat's stream with an event before each text and one before its end, which the test sets."""
    turns = [asyncio.Event() for _ in range(len(texts) + 1)]
    steps: list[Step] = [HEAD]
    for turn, text in zip(turns, texts, strict=False):
        steps += [turn, token(text, done=False)]
    return [*steps, turns[-1], token("", **DONE) + END], turns


def streamed(*texts: str) -> bytes:
    """A whole stream of a chat that ends well."""
    return HEAD + b"".join(token(text, done=False) for text in texts) + token("", **DONE) + END


def said(text: str, **more: Any) -> bytes:
    """A whole chat's reply."""
    message = {"role": "assistant", "content": text}
    return reply({"model": "m", "created_at": STAMP, "message": message, **DONE, **more})


def recorded(number: int, file: str = "exchanges") -> bytes:
    """The response of a recorded exchange, as the bytes that a real daemon sent."""
    return _bytes_of(exchanges(file)[number]["response"])


@cache
def exchanges(file: str = "exchanges") -> dict[int, dict[str, Any]]:
    """The recorded exchanges by number."""
    rows = [json.loads(text) for text in (DATA / f"{file}.jsonl").read_text().splitlines()]
    return {row["n"]: row for row in rows}


for _file in ("exchanges", "limits"):
    exchanges(_file)  # a megabyte: read before any loop runs


def _bytes_of(response: dict[str, Any]) -> bytes:
    lines = response.get("lines")
    headers = dict(response["headers"])
    text = (response.get("text") or "").encode()
    if lines is not None:
        headers.pop("content-length", None)
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(len(text))
        headers.pop("transfer-encoding", None)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    start = f"HTTP/1.1 {response['status']} X\r\n{head}\r\n".encode()
    if lines is None:
        return start + text
    return start + b"".join(line(one.rstrip("\n").encode()) for one in lines) + END
