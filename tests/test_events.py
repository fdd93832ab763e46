"""Events: who hears them, what becomes of a subscriber that fails, and that the list of names is what is told."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from ZODB.POSException import ConflictError

from batos.brief import as_file
from batos.errors import BatosError, InternalError, OllamaUnreachable, StreamCut
from batos.events import NAMES, PAYLOADS, Events
from batos.inference.ollama.bridge import ChatRequest
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm

SOURCES = Path(__file__).resolve().parents[1] / "src" / "batos"


class Heard(list[tuple[str, Mapping[str, Any]]]):
    """A subscriber that remembers."""

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        self.append((event, keys))

    @property
    def names(self) -> set[str]:
        return {event for event, _ in self}


def test_everyone_hears_until_they_leave() -> None:
    """Subscribers hear every event in order, from when they come until they go; going twice is no error."""
    first, second = Heard(), Heard()
    events = Events(first)
    leave = events.subscribe(second)
    events.emit("mission.retracted", mission="m-1")
    leave()
    leave()
    events.emit("mission.retracted", mission="m-2")
    assert [keys["mission"] for _, keys in first] == ["m-1", "m-2"]
    assert [keys["mission"] for _, keys in second] == ["m-1"]


def test_a_subscriber_that_fails_is_dropped() -> None:
    """One that raises hears nothing more; those before and after it hear everything, and the teller goes on."""
    before, after = Heard(), Heard()
    calls: list[str] = []

    def broken(event: str, keys: Mapping[str, Any]) -> None:
        calls.append(event)
        raise OSError("its reader has left")

    events = Events(before, broken, after)
    events.emit("mission.retracted", mission="m-1")
    events.emit("mission.retracted", mission="m-2")
    assert len(before) == len(after) == 2
    assert calls == ["mission.retracted"]


def test_a_subscriber_may_leave_while_it_is_told() -> None:
    """Leaving in the middle of an event, even by failing, keeps nobody else from hearing it."""
    after = Heard()
    events = Events()

    def leaving(event: str, keys: Mapping[str, Any]) -> None:
        leave()
        raise OSError("and the pipe is gone")

    leave = events.subscribe(leaving)
    events.subscribe(after)
    events.emit("mission.retracted", mission="m-1")
    assert len(after) == 1


def emitted() -> dict[str, set[str]]:
    """Every literal event name in src with the keys given beside it; `**` counts as every key."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
                name = getattr(node.args[0], "value", None) if node.args else None
                if isinstance(name, str):
                    keys = {each.arg or "**" for each in node.keywords}
                    known = found.get(name, {"**"})
                    found[name] = keys if "**" in known else known if "**" in keys else known & keys
    return found


def test_the_names_are_what_the_code_tells() -> None:
    """Every event that any module emits is in NAMES with its keys, and NAMES lists nothing that nobody emits."""
    told = emitted()
    assert set(told) == set(NAMES)
    for name, keys in told.items():
        assert set(NAMES[name]) <= keys or "**" in keys, name


@pytest.mark.parametrize("event", PAYLOADS)
def test_a_payload_has_the_keys_of_its_event(event: str) -> None:
    """What a type checker holds readers to is what the event always carries; the rest may be absent."""
    hints = get_type_hints(PAYLOADS[event], include_extras=True)
    always = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
    assert always - {"context_length"} == set(NAMES[event])


def faulty(request: ChatRequest) -> str | BatosError:
    """A mind that quotes what nobody wrote, so that the gate has it revise."""
    return plain_reply(request).replace('"word"', json.dumps('She wrote "the pier was made of old cheese and tar".'))


async def test_a_mission_tells_by_name(tmp_path: Path) -> None:
    """Whatever genesis and missions that are done, revised, failed and cancelled tell is in NAMES with its keys."""
    heard = Heard()
    bridge = ScriptedBridge(faulty)
    async with scripted_uvm(tmp_path, bridge, events=Events(heard)) as uvm:
        report = as_file("report.txt", b"The pier was made of granite.", 100)
        await uvm.missions.ask({"text": "What is the pier made of?", "persona": "BRICK", "effort": "cycle"}, [report])
        bridge.respond = lambda request: StreamCut("it was cut")
        with pytest.raises(StreamCut):
            await uvm.missions.ask({"text": "And the quay?"})
        bridge.respond = lambda request: OllamaUnreachable("it is away")
        with pytest.raises(OllamaUnreachable):
            await uvm.missions.ask({"text": "And the lighthouse?"})
        waiting = asyncio.ensure_future(uvm.missions.ask({"text": "And the storm?"}))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    for event, keys in heard:
        assert set(NAMES[event]) <= set(keys), event
        assert event not in PAYLOADS or keys.keys() <= get_type_hints(PAYLOADS[event]).keys(), event
    # A scripted model lies nowhere: tests/inference/vram/test_placement.py has what is told of memory.
    generation = {name for name in NAMES if name.startswith(("approval.", "cell.", "guardian.", "method."))}
    assert heard.names == set(NAMES) - {"txn.conflict", "vram.sample", "vram.spill", "queue.busy"} - generation


@pytest.mark.parametrize(("event", "keys"), [("mission.status", {"mission": "m-1"}), ("mission.tokn", {})])
def test_a_test_sees_what_is_told_wrongly(event: str, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is missing and a name that is not listed raise where a test runs, and nowhere else."""
    with pytest.raises(InternalError, match=event):
        Events().emit(event, **keys)
    monkeypatch.delenv("BATOS_DEBUG_EVENTS")
    Events().emit(event, **keys)


async def test_the_order_of_a_missions_life(tmp_path: Path) -> None:
    """It is accepted, runs, is routed, passes its states, is committed, and only then called done."""
    heard = Heard()
    async with scripted_uvm(tmp_path) as uvm:
        uvm.events.subscribe(heard)
        mission = await uvm.missions.submit({"text": "Why?"})
        await uvm.missions.run(mission)
    # Commits of the image's and the journal's queues stand between them; the mission's own has its name.
    told = [
        event
        for event, keys in heard
        if not event.startswith("inference.") and (event != "txn.commit" or keys["what"] == mission)
    ]
    life = ["mission.accepted", "mission.status", "mission.routed", "mission.state"]
    assert [event for event in dict.fromkeys(told) if event in life] == sorted(life, key=told.index)
    assert told[:2] == life[:2]
    assert told[-3:] == ["txn.commit", "mission.done", "mission.status"]
    assert {keys["mission"] for event, keys in heard if event.startswith("mission.")} == {mission}


async def test_a_conflict_is_told(tmp_path: Path) -> None:
    """When a mission's transaction meets a newer state of what it read, that is an event of its own."""
    heard = Heard()
    async with scripted_uvm(tmp_path, events=Events(heard)) as uvm:
        with pytest.raises(ConflictError), uvm.image.transaction("m-1"):
            raise ConflictError("somebody else was first")
    assert ("txn.conflict", {"what": "m-1"}) in heard
