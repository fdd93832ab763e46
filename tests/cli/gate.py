"""A gate before a daemon: questions stand there until a test lets them through; whatever else is asked passes."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

from tests.waiting import wait_until

#: The path of a question to a model.
_QUESTION = "/api/chat"


class Gate:
    """A gate that is open at first; `url` is the daemon's address for who comes through it.

    What is posted to the path `holds` is what it lets through or not.
    """

    def __init__(self, daemon: str, holds: str) -> None:
        self.holds = f"POST {holds} ".encode()
        self.daemon = urlsplit(daemon).hostname or "", urlsplit(daemon).port or 0
        self.url = ""
        self._turn = threading.Condition()
        self._free: int | None = None
        self._standing = 0

    @contextmanager
    def closed(self) -> Iterator[None]:
        """For a while no question comes through: what was asked has no end meanwhile, however slow the machine is."""
        self._let(0)
        try:
            yield
        finally:
            self._let(None)

    def wait_for_question(self) -> None:
        """Return when a question stands at the gate."""
        wait_until(lambda: self._standing, "a question at the gate")

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Let one question through, and then one each few seconds, until the end."""
        over = threading.Event()

        def let() -> None:
            while True:
                self._let(1)
                if over.wait(5):  # any pace: who waits for something in between has it later
                    return

        letting = threading.Thread(target=let)
        letting.start()
        try:
            yield
        finally:
            over.set()
            letting.join()
            self._let(0)

    def _let(self, number: int | None) -> None:
        with self._turn:
            self._free = number
            self._turn.notify_all()

    def passes(self, asker: socket.socket) -> bool:
        """Wait until the question of an asker may come through; False if the asker has left."""
        with self._turn:
            self._standing += 1
            try:
                while self._free == 0:
                    self._turn.wait(0.02)  # any pace: it looks again
                    if select.select([asker], [], [], 0)[0] and not asker.recv(1, socket.MSG_PEEK):
                        return False
                if self._free is not None:
                    self._free -= 1
                return True
            finally:
                self._standing -= 1


class _Passage(BaseRequestHandler):
    """A connection to the daemon, for one that came to the gate."""

    def handle(self) -> None:
        """Pass on what both say until one of them leaves."""
        assert isinstance(self.server, _Server)
        gate, asker = self.server.gate, self.request
        with suppress(OSError), socket.create_connection(gate.daemon) as daemon:
            answering = threading.Thread(target=_pour, args=(daemon, asker))
            answering.start()
            with suppress(OSError):
                # A head comes alone: the asker waits for each answer before it asks again.
                while (data := asker.recv(65_536)) and (not data.startswith(gate.holds) or gate.passes(asker)):
                    daemon.sendall(data)
            _end(daemon)
            answering.join()


class _Server(ThreadingTCPServer):
    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        super().__init__(("127.0.0.1", 0), _Passage)


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _end(target)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def gate_before(daemon: str, holds: str = _QUESTION) -> Iterator[Gate]:
    """A gate before the daemon at an address."""
    gate = Gate(daemon, holds)
    with _Server(gate) as server:
        gate.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        try:
            yield gate
        finally:
            server.shutdown()
            serving.join()
