"""What whoever watches a server is told."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.doors.serving import PATIENT, client_of, serving

from batos.cli.doors.door import open_server_door
from batos.cli.verb_options import VerbCall
from batos.cli.verbs.show import Watcher, follow
from batos.client.line import line_to
from batos.config import LoadedSettings, Settings
from batos.protocol.errors import NoServer
from batos.terminal.console import Console
from batos.terminal.layout import plain
from batos.testing import scripted_uvm

REFLEX = {"text": "Why?", "effort": "reflex", "persona": "ROBIN", "user": "ada"}


def notice(event: str, seq: int = 1, **keys: Any) -> dict[str, Any]:
    """A notice of a mission."""
    return {"v": 1, "seq": seq, "at": "2026-11-21T09:30:00.000Z", "event": event, "mission": "m-1", **keys}


def watcher(*, as_json: bool = False) -> tuple[Watcher, io.StringIO]:
    """A watcher and what it tells."""
    said = io.StringIO()
    return Watcher(Console(said, said, as_json, has_colour=False)), said


def test_a_mission_is_a_few_lines() -> None:
    """Accepted, routed, its states and its end, each with its time; calls and commits are for programs."""
    told, said = watcher()
    route = {"personas": ["BRICK"], "effort": "cycle", "confidence": 0.5, "reason": "a plan is asked for"}
    told_of: list[tuple[str, dict[str, Any]]] = [
        ("mission.accepted", {"user": "ada"}),
        ("mission.routed", route),
        ("mission.state", {"state": "IDLE"}),
        ("mission.state", {"state": "IDLE", "path": "council/brick"}),
        ("mission.partial", {"path": "x", "known": True}),
        ("mission.retracted", {"path": "brick/synthesizing#0"}),
        ("mission.retracted", {"path": "brick/protocol/absurd_synthesis#0"}),
        ("mission.status", {"status": "failed", "reason": {"message": "the budget is spent"}}),
    ]
    for number, (event, keys) in enumerate(told_of, 1):
        told.print_notice(notice(event, number, **keys))
    assert [line.split("  ", 1)[1] for line in said.getvalue().splitlines()] == [
        "m-1  accepted from ada",
        "m-1  BRICK at effort cycle, confidence 0.50: a plan is asked for",
        "m-1  IDLE",
        "m-1  council/brick IDLE",
        "m-1  revised: the gate found a fault",
        "m-1  a key protocol goes over the answer",
        "m-1  failed: the budget is spent",
    ]


def test_a_gap_is_told() -> None:
    """What came faster than it was read is counted; a mission that begins to be heard in its middle is no gap."""
    told, said = watcher()
    told.print_notice(notice("mission.state", 7, state="IDLE"))
    told.print_notice(notice("mission.state", 10, state="COMPLETE"))
    told.print_notice(notice("mission.status", 11, status="done"))
    told.print_notice(notice("mission.status", 30, status="done"))
    assert said.getvalue().count("came faster") == 1
    assert "2 events of m-1 were lost" in said.getvalue()


def test_programs_get_every_notice() -> None:
    """As it came, one a line, its number with it."""
    told, said = watcher(as_json=True)
    told.begin([{"id": "m-0", "status": "done", "text": "Why?"}])
    told.print_notice(notice("inference.start", 3, model="x"))
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert lines[0]["missions"][0]["id"] == "m-0"
    assert lines[1] == notice("inference.start", 3, model="x")


@given(st.text())
def test_no_control_characters(text: str) -> None:
    """Whatever a question or a reason says, nothing of it moves a cursor."""
    told, said = watcher()
    told.begin([{"at": "2026-11-21T09:30:00Z", "id": "m-0", "status": text, "text": text}])
    told.print_notice(notice("mission.status", status=text, reason={"message": text}))
    told.print_notice(notice("mission.state", state=text, path=text))
    told.print_notice(notice("mission.accepted", user=text))
    assert plain(said.getvalue()) == said.getvalue()


class Stream(io.StringIO):
    """A stream that says when something was written to it that holds a word."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: dict[str, asyncio.Event] = {}

    def write(self, text: str) -> int:
        """Keep it."""
        for word, event in self._awaited.items():
            if word in text:
                event.set()
        return super().write(text)

    def said(self, word: str) -> asyncio.Event:
        """Set once the word was written."""
        event = self._awaited.setdefault(word, asyncio.Event())
        if word in self.getvalue():
            event.set()
        return event


async def test_what_others_ask_is_followed(tmp_path: Path) -> None:
    """First what there is, then what happens, until the server stops: NoServer."""
    said, asked = Stream(), set()
    settings = Settings(home=tmp_path, user="ada")
    called = VerbCall(LoadedSettings(settings, {}), Console(said, said, as_json=True, has_colour=False), quiet=False)
    async with scripted_uvm(tmp_path) as uvm:
        async with serving(uvm), client_of(uvm) as other:
            before = await other.call("submit", {"brief": REFLEX, "follow": True})
            following = asyncio.create_task(
                follow(called, open_server_door(line_to(uvm.settings.home, patience=PATIENT)), {"limit": 5})
            )
            await said.said('"missions"').wait()
            done = said.said("mission.done")
            while not done.is_set():  # until the network has taken the watcher in
                asked.add((await other.call("submit", {"brief": REFLEX, "follow": True}))["id"])
        with pytest.raises(NoServer):
            await following
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line["id"] for line in lines[0]["missions"]] == [before["id"]]
    assert {line["mission"] for line in lines[1:]} <= asked
    assert {"mission.state", "mission.status", "mission.done"} <= {line["event"] for line in lines[1:]}
