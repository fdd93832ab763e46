"""A stand-in for the daemon that costs nothing: raw asyncio, fixed bytes prepared in advance, its own CPU counted.

Run as a process of its own, so that what it costs is never booked on a client:

    python bench/null_server.py [--port 0] [--latency-ms 200] [--replies FILE]

The first line on stdout is one JSON object {"url", "pid"}. On SIGTERM or SIGINT it prints its statistics as one JSON
object and exits; `GET /_stats` answers the same at any time: {"calls", "cpu_seconds", "cpu_ms_per_call", "by_reply"}.
`GET /_recorded` answers the last chat bodies as a JSON array, oldest first.

FILE is a JSON array of {"name", "when", "text"}: the first whose `when` strings all occur in the request's body gives
the text of the answer. The server is no emulator: it checks nothing, and the emulator is what tests are run against.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

_STAMP = "2026-01-01T00:00:00.000000000Z"
_DIGEST = "0" * 64
_CHAT = b"/api/chat"
_COUNTS = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 1_000_000,
    "load_duration": 1_000,
    "prompt_eval_count": 1_000,
    "prompt_eval_duration": 1_000,
    "eval_count": 20,
    "eval_duration": 1_000,
}
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "8.0B",
    "quantization_level": "Q4_K_M",
}
_SHOWN = {
    "license": "",
    "modelfile": "",
    "parameters": "",
    "template": "",
    "details": _DETAILS,
    "model_info": {
        "general.architecture": "llama",
        "general.parameter_count": 8_030_261_312,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        "llama.block_count": 32,
        "llama.context_length": 131_072,
        "llama.embedding_length": 4096,
    },
    "capabilities": ["completion", "embedding"],
    "modified_at": _STAMP,
}


def _http(body: bytes, media: bytes = b"application/json; charset=utf-8") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (media, len(body), body)


def _http_lines(lines: list[bytes]) -> bytes:
    chunks = b"".join(b"%x\r\n%b\n\r\n" % (len(line) + 1, line) for line in lines)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n\r\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Reply:
    """A fixed answer of /api/chat: the text that must occur in a body to get it, and its bytes whole and streamed."""

    name: str
    when: tuple[bytes, ...]
    whole: bytes
    streamed: bytes

    @classmethod
    def build(cls, name: str, when: list[str], text: str) -> Reply:
        """Build a reply; the streamed form is one line of content and the line with `done`."""
        head = {"model": "null", "created_at": _STAMP}
        said = {"role": "assistant", "content": text}
        whole = _http(_json({**head, "message": said, **_COUNTS}))
        lines = [
            _json({**head, "message": said, "done": False}),
            _json({**head, "message": {**said, "content": ""}, **_COUNTS}),
        ]
        return cls(name, tuple(part.encode() for part in when), whole, _http_lines(lines))


@dataclass(slots=True)
class NullDaemon:
    """All that the connections share: the answers, the models made so far, and the counts."""

    replies: tuple[Reply, ...]
    latency: float = 0.0
    calls: int = 0
    by_reply: Counter[str] = field(default_factory=Counter)
    recorded: deque[bytes] = field(default_factory=lambda: deque(maxlen=64))
    models: dict[str, bytes] = field(default_factory=dict)
    fixed: dict[bytes, bytes] = field(default_factory=dict)
    began: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self.fixed = {
            b"/": _http(b"Ollama is running", b"text/plain; charset=utf-8"),
            b"/api/version": _http(_json({"version": "0.33.0"})),
            b"/api/ps": _http(_json({"models": []})),
            b"/api/show": _http(_json(_SHOWN)),
            b"/api/generate": _http(_json({"model": "null", "created_at": _STAMP, "response": "", **_COUNTS})),
            b"/api/pull": _http_lines([_json({"status": "success"})]),
            b"/api/create": _http_lines([_json({"status": "success"})]),
        }
        self._list_models()

    def answer(self, path: bytes, body: bytes) -> bytes:
        """Return the bytes for one request."""
        if path == _CHAT:
            return self._chat(body)
        if path in (b"/api/create", b"/api/pull"):
            self._make(json.loads(body))
        elif path == b"/_stats":
            return _http(_json(self.stats()))
        elif path == b"/_recorded":
            return _http(b"[" + b",".join(self.recorded) + b"]")
        return self.fixed.get(path) or _http(b"{}")

    def _chat(self, body: bytes) -> bytes:
        self.calls += 1
        self.recorded.append(body)
        for reply in self.replies:
            if all(part in body for part in reply.when):
                self.by_reply[reply.name] += 1
                return reply.streamed if b'"stream":true' in body else reply.whole
        return _http(b'{"error":"no reply fits this body"}')

    def _make(self, asked: dict[str, Any]) -> None:
        name = asked.get("model") or asked["name"]
        self.models[name if ":" in name else f"{name}:latest"] = b""
        self._list_models()

    def _list_models(self) -> None:
        rows = [
            {
                "name": n,
                "model": n,
                "modified_at": _STAMP,
                "size": 4_920_000_000,
                "digest": _DIGEST,
                "details": _DETAILS,
            }
            for n in self.models
        ]
        self.fixed[b"/api/tags"] = _http(_json({"models": rows}))

    def stats(self) -> dict[str, Any]:
        """Return the calls of /api/chat, and the CPU of this process since it was ready, per call in milliseconds."""
        spent = time.process_time() - self.began
        return {
            "calls": self.calls,
            "cpu_seconds": round(spent, 4),
            "cpu_ms_per_call": round(1000 * spent / max(1, self.calls), 4),
            "by_reply": dict(self.by_reply),
        }


class NullProtocol(asyncio.Protocol):
    """A connection: finds the end of the head, the length of the body, and writes the prepared bytes."""

    __slots__ = ("_buffer", "_daemon", "_loop", "_need", "_transport")
    _transport: asyncio.Transport

    def __init__(self, daemon: NullDaemon, loop: asyncio.AbstractEventLoop) -> None:
        self._daemon = daemon
        self._loop = loop
        self._buffer = b""
        self._need = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take received bytes and answer every request that is complete."""
        buffer = self._buffer + data if self._buffer else data
        while len(buffer) >= self._need:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                break
            whole = end + 4 + _content_length(buffer, end)
            if len(buffer) < whole:
                self._need = whole
                break
            path = buffer.split(b" ", 2)[1]
            answer = self._daemon.answer(path, buffer[end + 4 : whole])
            if self._daemon.latency and path == _CHAT:
                self._loop.call_later(self._daemon.latency, self._write, answer)
            else:
                self._transport.write(answer)
            buffer, self._need = buffer[whole:], 0
            if not buffer:
                break
        self._buffer = buffer

    def _write(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


def _content_length(buffer: bytes, end: int) -> int:
    at = buffer.find(b"ontent-", 0, end)
    while at >= 0:
        if buffer[at + 7 : at + 14].lower() == b"length:":
            return int(buffer[at + 14 : buffer.find(b"\r\n", at)])
        at = buffer.find(b"ontent-", at + 7, end)
    return 0


def read_replies(path: Path | None) -> tuple[Reply, ...]:
    """Return the answers of a replies file, or one plain answer to everything."""
    if path is None:
        return (Reply.build("plain", [], "A fixed answer."),)
    return tuple(Reply.build(row["name"], row["when"], row["text"]) for row in json.loads(path.read_text()))


async def serve(daemon: NullDaemon, port: int) -> None:
    """Listen on loopback until a signal; print the address on stdout, and the statistics at the end."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(partial(NullProtocol, daemon, loop), "127.0.0.1", port, backlog=1024)
    host, bound = server.sockets[0].getsockname()
    print(json.dumps({"url": f"http://{host}:{bound}", "pid": os.getpid()}), flush=True)
    await stop.wait()
    server.close()
    print(json.dumps(daemon.stats()), flush=True)


def main(arguments: list[str]) -> None:
    """Read the flags and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="wait before each answer of /api/chat")
    parser.add_argument("--replies", type=Path, default=None, help="JSON array of {name, when, text}")
    given = parser.parse_args(arguments)
    daemon = NullDaemon(read_replies(given.replies), latency=given.latency_ms / 1000)
    asyncio.run(serve(daemon, given.port))


if __name__ == "__main__":
    main(sys.argv[1:])
