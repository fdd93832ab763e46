"""A stub service for tests of described APIs: what it was asked, and what it answers by path."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from batos.agency.records import api_records, look_up_records
from batos.agency.records.look_up_records import GrantTerms
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.uvm import UVM

DESCRIPTION = """Fares of the island ferries, at http://ferries.example/v1

GET /fares/{island}

What a crossing costs. It gives

{"island": "Holmey", "adult": 12.5, "car": 38.0}

An unknown island has status 404 and {"error": "no such island"}.
"""


@dataclass
class StubService:
    """A service: `replies` are status and body by path."""

    replies: dict[str, tuple[int, object]]
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    address: str = ""

    async def grant(self, uvm: UVM, name: str = "ferries", terms: GrantTerms | None = None, header: str = "") -> None:
        """Grant it to the asker of a mind, under a name, by DESCRIPTION."""

        def change(root: Root) -> None:
            told = uvm.settings.asker, iso(uvm.clock())
            made = look_up_records.add_look_up(root, name, "api", self.address, terms or GrantTerms(), told)
            roots.connection_of(root).add(made)
            api_records.describe_grant(root, made, DESCRIPTION, header)

        await uvm.image.shared.apply(change)


@contextmanager
def serving(replies: dict[str, tuple[int, object]]) -> Iterator[StubService]:
    """Serve replies on a free port of this machine."""
    stub = StubService(replies)

    class Handler(BaseHTTPRequestHandler):
        """Answers from the stub."""

        def do_GET(self) -> None:
            """Answer a request."""
            stub.asked.append(self.path)
            stub.headers.append(dict(self.headers.items()))
            status, body = stub.replies.get(unquote(urlsplit(self.path).path), (404, {"error": "no such island"}))
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_told: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
