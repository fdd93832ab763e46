"""A port for a test to listen at."""

from __future__ import annotations

import socket
from contextlib import closing


def free_port() -> int:
    """A port at which nothing listens now."""
    with closing(socket.socket()) as found:
        found.bind(("0.0.0.0", 0))
        port: int = found.getsockname()[1]
        return port
