"""A server of tools by the SDK of the protocol: what a stranger's server is like, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("tides", version="1.2.3")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def high_tide(harbour: str, unit: Literal["metres", "feet"] = "metres") -> str:
    """Return the time of the next high tide of a harbour."""
    return f"The next high tide of {harbour} is at 14:32, 3 {unit}."


@server.tool()
def ring_bell(times: int) -> str:
    """Ring the bell of the harbour so many times."""
    with Path(os.environ["BELL"]).open("a", encoding="utf-8") as bell:
        bell.write("ding\n" * times)
    return f"The bell was rung {times} times."


@server.tool()
async def dawdle(seconds: float) -> str:
    """Wait so long."""
    await asyncio.sleep(seconds)
    return "late"


@server.tool()
def fail(why: str) -> str:
    """Fail for a reason."""
    raise ValueError(why)


@server.tool()
def write_much(letters: int) -> str:
    """Return so many letters."""
    return "x" * letters


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def relay_as_older() -> None:
    """Stand before the server as one of the older era, which does not know the newer one's first request."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stdout) as inner:
        assert inner.stdin is not None
        for line in sys.stdin:
            asked = json.loads(line)
            if asked.get("method") == "server/discover":
                error = {"code": -32602, "message": "Received request before initialization was complete"}
                say(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
            else:
                inner.stdin.write(line.encode())
                inner.stdin.flush()
        inner.stdin.close()


class OlderApp:
    """The server over HTTP as one of the older era: what begins the newer one is a bad request."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "http" and (b"mcp-method", b"server/discover") in scope["headers"]:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request: no session"})
            return
        await self.app(scope, receive, send)


def serve(older: bool, bound: socket.socket) -> None:
    """Serve over HTTP at a socket."""
    app = server.streamable_http_app()
    config = uvicorn.Config(OlderApp(app) if older else app, log_level="error")
    uvicorn.Server(config).run([bound])


def main() -> None:
    """Serve: `http` or stdio, and `older`."""
    if "http" in sys.argv:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            bound.listen()
            say(str(bound.getsockname()[1]))
            serve("older" in sys.argv, bound)
    elif "older" in sys.argv:
        relay_as_older()
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
