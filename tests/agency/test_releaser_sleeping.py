"""A node that sleeps in the middle of an effect does not do it when it wakes: another node has decided about it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.agency.acting import Acting, acting
from tests.agency.http_target import listening
from tests.image.open_image import child, heard
from tests.image.servers import zeo_server

#: Seconds of a lease here.
LEASE = 1.0

#: Opening is a burst of CPU.
pytestmark = pytest.mark.blocks_loop


async def until_decided(mind: Acting) -> str:
    """The state of the effect, once this node has decided about it."""
    while True:
        (state,) = await mind.states()
        if state not in ("staged", "releasing"):
            return state
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(("grant", "where", "state"), [("notes", "begun", "released"), ("dark", "sink", "unknown")])
async def test_a_sleeper_does_no_effect(tmp_path: Path, grant: str, where: str, state: str) -> None:
    """Stopped after its commit, or after it has found its target: the node that takes over decides by the class."""
    served = tmp_path / "served"
    served.mkdir()
    with listening() as target, zeo_server(served) as port:
        image = f"zeo://127.0.0.1:{port}"
        script = Path(__file__).with_name("script_sleeping.py")
        with child(script, tmp_path, image, LEASE, target.url, grant, where) as sleeper:
            while (line := await heard(sleeper)) != "stopping":
                assert line
            async with acting(tmp_path, memory=False, image=image, journal="", lease=LEASE) as mind:
                async with asyncio.timeout(20):
                    assert await until_decided(mind) == state
                os.kill(sleeper.pid, signal.SIGCONT)
                while (line := await heard(sleeper)) and not line.startswith(("tried", "ended")):
                    pass
                assert line
                assert await mind.states() == [state]
                assert mind.lines() == (["A line."] if grant == "notes" else [])
                assert target.asked == []
