"""A `batos` for the shells of tests: it lends its streams to a process that is forked, and ends as that does."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer

from tests.fork_server import ForkedCommand

#: It imports next to nothing, which is its point; a signal that comes to it goes on to the process.
_SCRIPT = """#!{python} -IS
import json, os, signal, socket, struct, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
order = {{"arguments": sys.argv[1:], "environ": dict(os.environ), "folder": os.getcwd()}}
body = json.dumps(order).encode()
socket.send_fds(asked, [struct.pack("!I", len(body))], [0, 1, 2])
asked.sendall(body)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: asked.sendall(bytes([number])))
answer = asked.recv(4)
code = struct.unpack("!i", answer)[0] if answer else 1
sys.exit(code if code >= 0 else 128 - code)
"""


class _Lender(BaseRequestHandler):
    """One run: what asks sends its streams and its order, then the numbers of signals, and is sent the exit code."""

    def handle(self) -> None:
        """Run it; when what asked for it is gone, the run is killed."""
        head, streams, _, _ = socket.recv_fds(self.request, 4, 3)
        (length,) = struct.unpack("!I", head)
        body = b""
        while len(body) < length:
            body += self.request.recv(length - len(body))
        order = json.loads(body)
        process = ForkedCommand(order["arguments"], order["environ"], *streams, folder=order["folder"])
        for stream in streams:
            os.close(stream)
        while process.poll() is None:
            if self.request not in wait([self.request, process.sentinel]):
                continue
            numbers = self.request.recv(16)
            for number in numbers or [signal.SIGKILL]:
                process.send_signal(number)
            if not numbers:
                process.wait()
                return
        self.request.sendall(struct.pack("!i", process.wait()))


@contextmanager
def lent(command: Path) -> Iterator[None]:
    """Write such a program to the path `command`; it works until the end."""
    with tempfile.TemporaryDirectory(prefix="batos-") as folder:  # a socket's path may not be long
        address = f"{folder}/s"
        with ThreadingUnixStreamServer(address, _Lender) as server:
            serving = threading.Thread(target=server.serve_forever, args=(0.05,))
            serving.start()
            try:
                command.write_text(_SCRIPT.format(python=sys.executable, address=address), encoding="utf-8")
                command.chmod(0o755)
                yield
            finally:
                server.shutdown()
                serving.join()
