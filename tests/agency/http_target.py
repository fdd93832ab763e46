"""A program of this machine that takes what is posted to it, and does what comes under one key once."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Target:
    """What was posted: `asked` has every request, `done` the data by key."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.done: dict[str, Any] = {}
        #: The statuses of the next answers; 0 closes the connection after the work.
        self.answers: list[int] = []
        self.url = ""
        #: Set by the first request.
        self.heard = threading.Event()
        #: Cleared, it takes requests and never answers.
        self.answering = threading.Event()
        self.answering.set()


@contextmanager
def listening(tls: ssl.SSLContext | None = None) -> Iterator[Target]:
    """A program that listens on a free port of this machine; `tls`: in that way alone."""
    target = Target()

    class Handler(BaseHTTPRequestHandler):
        """Takes one request."""

        def do_POST(self) -> None:
            """Do what comes under a key, once."""
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Idempotency-Key"]
            target.asked.append((key, data))
            target.heard.set()
            if not target.answering.is_set():
                target.answering.wait()
                self.close_connection = True
                return
            status = target.answers.pop(0) if target.answers else 200
            if status < 300:
                target.done.setdefault(key, data)
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(b"taken")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    target.url = f"http://127.0.0.1:{server.server_port}/inbox"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield target
    finally:
        target.answering.set()
        server.shutdown()
        thread.join()
        server.server_close()
