"""The verb ask without a server: what its turn makes due is done after the answer, with a note."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.conversations.written_turns import exchanges, recording, write_turns

from batos import config
from batos.cli.doors.door import Door
from batos.cli.doors.following import FollowedMission
from batos.cli.doors.in_process import open_here
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.verbs.ask import _ask
from batos.protocol.errors import BatosError, OllamaUnfit
from batos.terminal.console import Console
from batos.testing import ScriptedBridge, plain_reply
from batos.uvm import Seams


@pytest.mark.parametrize(("record", "noted"), [("Anna Lund sealed jars.", ""), (OllamaUnfit("no room"), "no room")])
async def test_the_answer_comes_first_and_stands_whatever_comes_of_the_rest(
    tmp_path: Path, record: str | BatosError, noted: str
) -> None:
    """The note stands behind the answer; a compaction that fails is told with its reason; the exit is the answer's."""
    home = tmp_path / "home"
    home.mkdir()
    settings = config.load({}, {"home": str(home), "image": "memory://ask", "user": "tester"}).settings
    bridge = ScriptedBridge(recording(lambda request: record, plain_reply))
    compactions: list[object] = []

    @asynccontextmanager
    async def prepared() -> AsyncIterator[Door]:
        async with open_here(settings, Seams(bridge=bridge)) as way:
            assert way.uvm is not None
            await way.uvm.readiness.genesis()
            brief["conversation"] = await write_turns(way.uvm, exchanges(20))
            yield way
            compactions.extend(way.uvm.readings.turns(str(brief["conversation"]))["compactions"])

    brief: dict[str, object] = {"text": "And now?", "effort": "reflex", "user": "tester"}
    written = io.StringIO()
    printer = MissionPrinter(
        Console.from_streams(written, written, as_json=False), quiet=False, streams=False, shows_voices=False
    )
    assert await _ask(prepared(), FollowedMission(printer), brief, []) == 0
    told = written.getvalue()
    assert told.index("A scripted sentence.") < told.index("Older turns are being compacted by m-")
    assert noted in told
    assert bool(compactions) == (not noted)
