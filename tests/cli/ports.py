"""A port for a test to listen at."""

from __future__ import annotations

import random
import socket
from contextlib import closing

#: Below those that the system gives to whoever asks for any: nobody is given one of these before the test listens.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A port at which nothing listens now."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with closing(socket.socket()) as found:
            try:
                found.bind(("0.0.0.0", port))
            except OSError:  # it is taken
                continue
            return port
    raise AssertionError("every port is taken")
