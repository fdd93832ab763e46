"""A stub of an HTTP API: it answers from a list of replies, and counts what came."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a file, one a line; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


@dataclass
class StubApi:
    """The replies of an API, and the requests that it got: (method, path, query)."""

    replies: Sequence[Mapping[str, Any]]
    stage: int = 1
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""
    #: The bodies that it sent.
    sent: list[str] = field(default_factory=list)
    _used: Counter[int] = field(default_factory=Counter)

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], str]:
        """Return status, headers and body: those of the first reply that fits, of the newest stage."""
        parts = urlsplit(target)
        path, query = unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True))
        self.asked.append((method, path, query))
        for number, reply in sorted(enumerate(self.replies), key=lambda each: -int(each[1].get("stage", 1))):
            if reply.get("stage", 1) > self.stage or self._used[number] >= reply.get("times", 1 << 30):
                continue
            if reply.get("method", "GET") != method or not _fits(reply, path, query):
                continue
            if any(headers.get(name) != value for name, value in reply.get("needs", {}).items()):
                return 401, {}, '{"error": "a key is needed"}'
            self._used[number] += 1
            body = reply["body"] if isinstance(reply["body"], str) else json.dumps(reply["body"], ensure_ascii=False)
            self.sent.append(body)
            return reply.get("status", 200), reply.get("headers", {}), body
        return 404, {}, '{"error": "not found"}'


def _fits(reply: Mapping[str, Any], path: str, query: Mapping[str, str]) -> bool:
    """Test if a reply is to this request: its path, in which `{any}` is one segment, and all of its query."""
    wanted, given = reply["path"].split("/"), path.split("/")
    same = len(wanted) == len(given) and all(a in ("{any}", b) for a, b in zip(wanted, given, strict=True))
    return same and (bool(reply.get("any_query")) or reply.get("query", {}) == query)


def send_json(handler: BaseHTTPRequestHandler, status: int, body: str, headers: Mapping[str, str]) -> None:
    """Send a reply, of the type of JSON unless its headers name another."""
    data = body.encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


@contextmanager
def serving_replies(reply: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serve GET on a free port of this machine by a function; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        """Answers by the function."""

        def do_GET(self) -> None:
            """Answer a request."""
            reply(self)

        def log_message(self, *_told: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving(stub: StubApi) -> Iterator[StubApi]:
    """Serve a stub on a free port of this machine."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        status, headers, body = stub.answer(handler.command, handler.path, dict(handler.headers.items()))
        send_json(handler, status, body, headers)

    with serving_replies(reply) as stub.address:
        yield stub
