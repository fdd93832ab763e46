"""`batos mcp`: a host starts it, and talks over its standard input and output."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG

from ollama_emulator.emulator import Emulator, Options

VERB = [sys.executable, "-m", "batos", "mcp"]


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """The environment of a home over an emulated daemon, without a server."""
    return {
        "BATOS_HOME": str(tmp_path / "home"),
        "BATOS_SERVER": "here",
        "BATOS_INSTALL": "never",
        "PATH": "/usr/bin:/bin",
    }


def test_a_host_asks_and_a_person_says_yes(place: dict[str, str]) -> None:
    """The SDK starts it, in the era before; a question to the person goes back over the line."""
    mcp = pytest.importorskip("mcp", reason="needs mcp: pip install batos[dev]")
    stdio = importlib.import_module("mcp.client.stdio")
    types = importlib.import_module("mcp_types")
    seen: list[str] = []

    async def elicit(_context: Any, params: Any) -> Any:
        seen.append(params.message)
        return types.ElicitResult(action="accept", content={"yes": True})

    async def talk(daemon: str, mode: str) -> None:
        environ = {**place, "OLLAMA_HOST": daemon}
        server = stdio.StdioServerParameters(command=VERB[0], args=VERB[1:], env=environ)
        async with mcp.Client(stdio.stdio_client(server), mode=mode, elicitation_callback=elicit) as client:
            asked = await client.call_tool("ask", {"question": "How do tides work?", "effort": "reflex"})
            assert asked.structured_content["status"] == "done"
            undone = await client.call_tool("undo", {"mission": asked.structured_content["mission"]})
            assert not undone.is_error

    async def both() -> None:
        async with Emulator(Options()).serving() as daemon:
            genesis = [*VERB[:-1], "genesis", "--quiet"]
            await asyncio.to_thread(subprocess.run, genesis, env={**place, "OLLAMA_HOST": daemon}, check=True)
            for mode in ("legacy", "auto"):
                await talk(daemon, mode)

    asyncio.run(both())
    assert len(seen) == 2


def test_hostile_lines_are_answered_one_by_one(place: dict[str, str]) -> None:
    """What is no message is told; nothing but messages is written; the end of the input ends it."""
    lines: list[bytes] = [
        b"no json", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"x" * 2_000_000, b"",
        b'{"jsonrpc":"2.0","id":"r","result":{}}', b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"recall","arguments":{"query":"lamp"}}}',
    ]  # fmt: skip
    done = subprocess.run(
        VERB, input=b"\n".join(lines) + b"\n", env={**place, "OLLAMA_HOST": "http://127.0.0.1:9"},
        capture_output=True, timeout=HANG, check=False,
    )  # fmt: skip
    told = [json.loads(each) for each in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [each["error"]["code"] for each in told if "error" in each] == [-32700, -32600, -32700, -32600]
    assert {1: {}}.items() <= {each["id"]: each["result"] for each in told if "result" in each}.items()
    assert all(each["jsonrpc"] == "2.0" for each in told)
