"""A node that sleeps in the middle of an effect does not do it when it wakes: another node has decided about it."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agency.acting import Acting, acting
from tests.agency.http_target import listening
from tests.image.lease_clock import LEASE, Clock
from tests.image.open_image import child, heard
from tests.image.servers import zeo_server, zeo_uri
from tests.waiting import HANG

from batos.uvm import Seams

#: Opening is a burst of CPU.
pytestmark = pytest.mark.blocks_loop


async def until_decided(mind: Acting) -> str:
    """The state of the effect, once this node has decided about it."""
    while True:
        (state,) = await mind.states()
        if state not in ("staged", "releasing"):
            return state
        await asyncio.sleep(0.05)  # any pace: it looks again


@pytest.mark.parametrize(("grant", "where", "state"), [("notes", "begun", "released"), ("dark", "sink", "unknown")])
async def test_a_sleeper_does_no_effect(tmp_path: Path, grant: str, where: str, state: str) -> None:
    """Stopped after its commit, or after it has found its target: the node that takes over decides by the class."""
    clock = Clock()
    seams = Seams(opening=lambda given: replace(given, lease_clock=clock))
    served = tmp_path / "served"
    served.mkdir()
    with listening() as target, zeo_server(served) as port:
        image = zeo_uri(port)
        script = Path(__file__).with_name("script_sleeping.py")
        with child(script, tmp_path, image, target.url, grant, where) as sleeper:
            while await heard(sleeper) != "stopping":
                pass
            clock.step = LEASE / 8  # opening waits for the publisher's part, which the sleeper has
            async with acting(tmp_path, seams=seams, memory=False, image=image, journal="", lease=LEASE) as mind:
                clock.step = clock.ahead = 0.0  # its own lease is as new as can be
                async with asyncio.timeout(HANG):
                    assert await until_decided(mind) == state
                os.kill(sleeper.pid, signal.SIGCONT)
                while not (await heard(sleeper)).startswith(("tried", "ended")):
                    pass
                assert await mind.states() == [state]
                assert mind.lines() == (["A line."] if grant == "notes" else [])
                assert target.asked == []
