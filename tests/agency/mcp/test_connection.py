"""Connections to servers of the protocol's own SDK, as processes and over HTTP, of the newer and the older era."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agency.mcp.connection_laws import ConnectionLaws

from batos.agency.mcp.server_records import McpServer

SERVER = str(Path(__file__).parent / "sdk_server.py")


@pytest.fixture(scope="session")
def newer_port() -> Iterator[int]:
    """The port of a server of the newer era."""
    yield from serve()


@pytest.fixture(scope="session")
def older_port() -> Iterator[int]:
    """The port of a server of the older era."""
    yield from serve("older")


def serve(*more: str) -> Iterator[int]:
    """Serve over HTTP, once for all tests: the SDK takes a second to load."""
    command, env = [sys.executable, SERVER, "http", *more], {**os.environ, "BELL": os.devnull}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


class TestNewerProcess(ConnectionLaws):
    """A program of the newer era."""

    @pytest.fixture
    def server(self) -> McpServer:
        """The program."""
        return McpServer("tides", "tester", command=(sys.executable, SERVER), env=("BELL",))


class TestOlderProcess(ConnectionLaws):
    """A program of the older era."""

    is_modern = False

    @pytest.fixture
    def server(self) -> McpServer:
        """The program."""
        return McpServer("tides", "tester", command=(sys.executable, SERVER, "older"), env=("BELL",))


class TestNewerAddress(ConnectionLaws):
    """An address of the newer era."""

    @pytest.fixture
    def server(self, newer_port: int) -> McpServer:
        """The address."""
        return McpServer("tides", "tester", url=f"http://127.0.0.1:{newer_port}/mcp")


class TestOlderAddress(ConnectionLaws):
    """An address of the older era, with sessions."""

    is_modern = False

    @pytest.fixture
    def server(self, older_port: int) -> McpServer:
        """The address."""
        return McpServer("tides", "tester", url=f"http://127.0.0.1:{older_port}/mcp")
