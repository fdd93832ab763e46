"""A call of a program's tool whose server or program is killed at any point: made once, or unknown, and never twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import pytest
from tests.agency import script_lending
from tests.waiting import HANG, until

from batos.client import addresses
from batos.client.clients import AsyncClient
from batos.testing import ScriptedBridge, scripted_uvm


async def start(what: str, home: Path, point: str) -> Process:
    """A process of the script; a server is listening when this returns."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", script_lending.__name__, what, str(home), point, stdout=PIPE, stderr=DEVNULL
    )
    if what == "server":

        def listens() -> bool:
            assert process.returncode is None, "the server ended"
            found = addresses.running_server(home)
            return found is not None and found.pid == process.pid

        await until(listens, "the server")
    return process


@pytest.mark.parametrize("point", ["staged", "sent", "answered", "caller", "none"])
async def test_a_call_is_made_once_or_is_unknown(own_home: Path, point: str) -> None:
    """A server that comes back asks the program that still waits; of one that is gone nobody knows."""
    async with scripted_uvm(own_home, ScriptedBridge(), memory=False):
        pass  # genesis is done
    server = await start("server", own_home, point)
    caller = await start("caller", own_home, point)
    async with asyncio.timeout(HANG):
        if point in ("staged", "sent", "answered"):
            assert await server.wait() == -signal.SIGKILL
            server = await start("server", own_home, "none")
        said, _ = await caller.communicate()
        assert (caller.returncode, said) == ((-signal.SIGKILL, b"") if point == "caller" else (0, b"done\n"))
        async with AsyncClient(own_home, starts=False) as client:
            await client.wait("last")
            effects = (await client.effects())["effects"]
    server.kill()
    await server.wait()
    assert (own_home / "log").read_text() == "Rome\n"
    assert [each["state"] for each in effects] == ["unknown" if point == "caller" else "released"]
    last = (own_home / "said").read_text().splitlines()[-1]
    assert last == "fired" if point != "caller" else "nobody knows what came of it" in last
