"""A mission that somebody waits for: told until its end, and cancelled when they stop it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doors.serving import PATIENT, Waiting, serving
from tests.waiting import HANG, until

from batos.cli.doors.door import Door
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission_printer import MissionPrinter
from batos.client.clients import AsyncClient
from batos.client.pending import OnAcknowledged, OnEvent
from batos.protocol.errors import BatosError, Busy, NoServer
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.terminal.console import Console
from batos.testing import scripted_uvm

CYCLE = {"brief": {"text": "How do I build a shed?", "effort": "cycle", "persona": "BRICK"}}


def followed(*, as_json: bool = False, patience: float = 0.2) -> tuple[FollowedMission, io.StringIO]:
    """A mission that is followed, and what it tells; what it is patient for comes at once, or never."""
    said = io.StringIO()
    return FollowedMission(
        MissionPrinter(Console(said, said, as_json, has_colour=False), False, False, False), patience=patience
    ), said


class Hand:
    """Answers by hand: acknowledges `mission` if it has one, then raises `error`, or hangs for ever."""

    def __init__(self, mission: str = "", error: BatosError | None = None) -> None:
        self.mission, self.error = mission, error
        self.asked: list[str] = []

    async def answer(
        self, verb: str, args: Mapping[str, Any], on_event: OnEvent, on_acknowledged: OnAcknowledged
    ) -> dict[str, Any]:
        """What it was made for."""
        self.asked.append(verb)
        if self.mission:
            on_acknowledged({"mission": self.mission})
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()
        raise AssertionError


async def test_ends_that_are_told(tmp_path: Path) -> None:
    """An answer is 0; a mission that failed is its reason's exit code, with what it cost."""
    async with scripted_uvm(tmp_path) as uvm:
        way = Door(Dispatcher(uvm, Uploads(tmp_path / "up", 1_000), works=False).handle, uvm=uvm)
        good, said = followed()
        assert await good.run(way, "submit", CYCLE) == 0
        assert good.mission in said.getvalue()
        bad, told = followed()
        assert await bad.run(way, "submit", {"brief": {**CYCLE["brief"], "budget": {"calls": 2}}}) == 4
        assert f"{bad.mission} failed; 2 calls" in told.getvalue()


async def test_stopped_it_cancels(tmp_path: Path) -> None:
    """The mission is cancelled with it, and its report is told before the end."""
    bridge = Waiting()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        way = Door(Dispatcher(uvm, Uploads(tmp_path / "up", 1_000), works=False).handle, uvm=uvm)
        found, said = followed(as_json=True, patience=HANG)
        asked = asyncio.create_task(found.run(way, "submit", CYCLE))
        await bridge.asked.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        last = json.loads(said.getvalue().splitlines()[-1])
        assert (last["event"], last["mission"]["status"]) == ("mission.report", "cancelled")
        assert uvm.readings.mission(found.mission)["status"] == "cancelled"


async def test_stopped_before_it_was_accepted() -> None:
    """There is nothing to cancel, and nobody waits for ever to be sure of it."""
    way = Hand()
    found, said = followed()
    asked = asyncio.create_task(found.run(Door(way.answer), "submit", CYCLE))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (way.asked, said.getvalue()) == (["submit"], "")


async def test_a_server_that_does_not_answer() -> None:
    """Nobody waits for ever to cancel: that it could not be done is said, and where the mission is."""
    way = Hand("m-1")
    found, said = followed()
    asked = asyncio.create_task(found.run(Door(way.answer), "submit", CYCLE))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert way.asked == ["submit", "cancel"]
    assert "It could not be cancelled: the server does not answer.\nm-1 is in the image" in said.getvalue()


async def test_what_is_not_accepted_is_an_error() -> None:
    """It is raised as it is; there is no mission to speak of."""
    found, said = followed()
    with pytest.raises(Busy):
        await found.run(Door(Hand(error=Busy("as many wait as may")).answer), "submit", CYCLE)
    assert said.getvalue() == ""


async def test_a_server_that_is_lost_after_it_accepted() -> None:
    """The error is NoServer, and where the mission is found is said."""
    found, said = followed()
    with pytest.raises(NoServer):
        await found.run(Door(Hand("m-1", NoServer("it has stopped")).answer), "submit", CYCLE)
    assert said.getvalue() == "m-1 is in the image: `batos show m-1`.\n"


async def test_a_server_that_does_not_come_back(tmp_path: Path) -> None:
    """A client that has waited long enough says so with NoServer: exit 6."""
    bridge = Waiting()
    found, said = followed()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        client = AsyncClient(tmp_path, patience=replace(PATIENT, reconnect=0.2))  # any pace: none comes back
        async with serving(uvm):
            await client.__aenter__()
            asked = asyncio.create_task(found.run(Door(client.call, client.watch), "submit", CYCLE))
            await bridge.asked.wait()
            await until(lambda: found.mission, "the acknowledgement")
        with pytest.raises(NoServer) as caught:
            await asked
        await client.close()
    assert caught.value.exit_code == 6
    assert "The server is gone" in said.getvalue()
    assert f"batos show {found.mission}" in said.getvalue()
