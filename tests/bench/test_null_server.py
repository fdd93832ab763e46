"""The null server as a process: whatever way the bytes arrive, the prepared ones come back, and it counts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import ollama
import pytest
from tests.waiting import HANG

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "null_server.py"
REPLIES = [
    {"name": "second", "when": ['"q1":{', "faulty"], "text": "mended"},
    {"name": "first", "when": ['"q1":{'], "text": "faulty"},
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Its URL; it is stopped at the end, and then tells its statistics."""
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps(REPLIES), encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "--replies", str(replies)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, f"the null server ended with {process.wait(HANG)}; its errors are on stderr"
        yield json.loads(first)["url"]
        process.terminate()
        assert json.loads(process.stdout.read()).keys() == {"calls", "cpu_seconds", "cpu_ms_per_call", "by_reply"}


@contextmanager
def client_of(url: str) -> Iterator[ollama.Client]:
    client = ollama.Client(host=url, trust_env=False)
    yield client
    client.close()  # type: ignore[no-untyped-call]  # the client leaves this one untyped


def get(url: str, path: str) -> Any:
    with urlopen(url + path, timeout=HANG) as reply:
        return json.load(reply)


def request(body: bytes) -> bytes:
    return b"POST /api/chat HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def answers(url: str, pieces: list[bytes], expected: int) -> bytes:
    """What comes back until so many answers were seen."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port or 0), timeout=HANG) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)  # any pace: pieces that arrive together are answered too
        got = b""
        while got.count(b'"done":true') < expected:
            data = connection.recv(65536)
            assert data, got
            got += data
    return got


async def test_the_client_reads_both_forms(server: str) -> None:
    """The bare client gets the same text whole and streamed, and the reply is chosen by what the body holds."""
    client = ollama.AsyncClient(host=server, trust_env=False, verify=False)  # reading authorities holds the loop
    asked: dict[str, Any] = {"model": "m", "format": {"properties": {"q1": {}}}}
    whole = await client.chat(messages=[{"role": "user", "content": "go"}], **asked)
    parts = await client.chat(messages=[{"role": "user", "content": whole.message.content}], stream=True, **asked)
    streamed = [part.message.content or "" async for part in parts]
    assert (whole.message.content, "".join(streamed)) == ("faulty", "mended")
    await client.close()  # type: ignore[no-untyped-call]  # the client leaves this one untyped
    assert get(server, "/_stats")["by_reply"] == {"first": 1, "second": 1}
    assert [body.get("stream") for body in get(server, "/_recorded")] == [False, True]


@pytest.mark.parametrize("size", [1, 7, 40, 10_000])
def test_requests_may_arrive_in_any_pieces(server: str, size: int) -> None:
    """Two requests on one connection, cut anywhere or sent at once, get two answers."""
    body = json.dumps({"format": {"q1": {}}, "stream": False}, separators=(",", ":")).encode()
    both = request(body) * 2
    step = max(size, len(both) // 40)
    got = answers(server, [both[at : at + step] for at in range(0, len(both), step)], 2)
    assert got.count(b"HTTP/1.1 200 OK") == 2
    assert get(server, "/_stats")["calls"] == 2


def test_a_model_that_was_made_is_listed(server: str) -> None:
    """Genesis finds what it made."""
    with client_of(server) as client:
        client.create("batos-brick:0123456789ab", from_="base")
    assert [row["name"] for row in get(server, "/api/tags")["models"]] == ["batos-brick:0123456789ab"]


def test_a_body_that_fits_no_reply_is_an_error(server: str) -> None:
    """A drift of the kernel's schemas is noticed, not answered with anything."""
    with client_of(server) as client, pytest.raises(ollama.ResponseError, match="no reply fits"):
        list(client.chat("m", [], stream=True))
