"""Events: who hears them, what becomes of a subscriber that fails, and that the list of names is what is told."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, is_typeddict

import pytest
from tests.minds.tool_boxes import FolderTools
from ZODB.POSException import ConflictError

from batos.events import Events
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol import event_payloads
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, InternalError, OllamaUnreachable, StreamCut
from batos.protocol.event_payloads import EVENTS, MISSION_RETRACTED, MISSION_STATUS, Event, MissionRetracted
from batos.protocol.mission_documents import PlacementDocument
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import Seams

SOURCES = Path(__file__).resolve().parents[1] / "src" / "batos"


class EventRecorder(list[tuple[str, Mapping[str, Any]]]):
    """A subscriber that remembers."""

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        self.append((event, keys))

    @property
    def names(self) -> set[str]:
        return {event for event, _ in self}


def test_everyone_hears_until_they_leave() -> None:
    """Subscribers hear every event in order, from when they come until they go; going twice is no error."""
    first, second = EventRecorder(), EventRecorder()
    events = Events(first)
    leave = events.subscribe(second)
    events.emit(MISSION_RETRACTED, MissionRetracted(mission="m-1"))
    leave()
    leave()
    events.emit(MISSION_RETRACTED, MissionRetracted(mission="m-2"))
    assert [keys["mission"] for _, keys in first] == ["m-1", "m-2"]
    assert [keys["mission"] for _, keys in second] == ["m-1"]


def test_a_subscriber_that_fails_is_dropped() -> None:
    """One that raises hears nothing more; those before and after it hear everything, and the teller goes on."""
    before, after = EventRecorder(), EventRecorder()
    calls: list[str] = []

    def broken(event: str, keys: Mapping[str, Any]) -> None:
        calls.append(event)
        raise OSError("its reader has left")

    events = Events(before, broken, after)
    events.emit(MISSION_RETRACTED, MissionRetracted(mission="m-1"))
    events.emit(MISSION_RETRACTED, MissionRetracted(mission="m-2"))
    assert len(before) == len(after) == 2
    assert calls == ["mission.retracted"]


def test_a_subscriber_may_leave_while_it_is_told() -> None:
    """Leaving in the middle of an event, even by failing, keeps nobody else from hearing it."""
    after = EventRecorder()
    events = Events()

    def leaving(event: str, keys: Mapping[str, Any]) -> None:
        leave()
        raise OSError("and the pipe is gone")

    leave = events.subscribe(leaving)
    events.subscribe(after)
    events.emit(MISSION_RETRACTED, MissionRetracted(mission="m-1"))
    assert len(after) == 1


def emitted() -> dict[str, set[str]]:
    """Every event that a module of src emits, by the name of its constant, with the types of payload made for it."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "emit" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
                if len(node.args) != 2:
                    continue  # what a reader hands on is no event
                event, payload = node.args
                made = {ast.unparse(payload.func)} if isinstance(payload, ast.Call) else set()
                found.setdefault(ast.unparse(event), set()).update(made)
    return found


def test_the_events_are_those_that_the_code_emits() -> None:
    """Every event that any module emits is in EVENTS, each under its constant, and none that nobody emits."""
    constants = {name: each for name, each in vars(event_payloads).items() if isinstance(each, Event)}
    assert {each.name: each for each in constants.values()} == EVENTS
    assert all(name == each.name.upper().replace(".", "_") for name, each in constants.items())
    assert len({each.name for each in constants.values()}) == len(constants)
    told = emitted()
    assert set(told) == set(constants)
    for name, made in told.items():
        assert {each for each in made if not each.endswith("as_dict")} <= {constants[name].payload.__name__}, name


def test_every_event_has_one_payload_type_of_its_own() -> None:
    """Two events never share a type, but the two of a model's memory; every payload's type is an event's."""
    types = [event.payload for event in EVENTS.values()]
    assert all(is_typeddict(each) for each in types)
    assert [each.__name__ for each in types if types.count(each) > 1] == ["PlacementDocument", "PlacementDocument"]
    written = {each for each in vars(event_payloads).values() if is_typeddict(each)}
    here = {each for each in written if each.__module__ == event_payloads.__name__}
    shared = {event_payloads.MissionPayload, event_payloads.MissionSummary}
    assert here - shared == set(types) - {PlacementDocument}


def test_the_keys_of_an_event_follow_from_its_payload() -> None:
    """A key that may be absent is known, and is none of those that every payload has."""
    assert MISSION_STATUS.keys == ("mission", "status", "reason")
    assert MISSION_STATUS.known_keys == {"mission", "status", "reason", "attempt"}


def faulty(request: ChatRequest) -> str | BatosError:
    """A mind that quotes what nobody wrote, so that the gate has it revise, beside what the file says."""
    said = 'She wrote "the pier was made of old cheese and tar". The pier was made of granite.'
    return plain_reply(request) if request.schema else said


#: Events that no mission of these tests tells.
ELSEWHERE = {
    "txn.conflict",
    "vram.sample",
    "vram.spill",
    "queue.busy",
    "memory.vectors",
    "memory.folded",
    "image.packed",
    "erasure.step",
    "schedule.fired",
    "mission.outside",
}


async def test_a_mission_tells_by_name(tmp_path: Path) -> None:
    """What genesis and missions that are done, revised, ruled, failed and cancelled tell is in EVENTS with its keys."""
    heard = EventRecorder()
    bridge = ScriptedBridge(faulty)
    # In files, since a mind in memory is a copy of one whose genesis is done.
    pages = tmp_path / "pages"
    pages.mkdir()
    tools = FolderTools(pages)
    seams = Seams(tools=(lambda context: tools if context.mission.brief.persona == "BABS" else None,))
    async with scripted_uvm(tmp_path / "home", bridge, memory=False, events=Events(heard), seams=seams) as uvm:
        await uvm.missions.ask({"text": "Look up who built the tower.", "persona": "BABS", "effort": "reflex"})
        report = as_file("report.txt", b"The pier was made of granite.", 100)
        await uvm.missions.ask({"text": "What is the pier made of?", "persona": "BRICK", "effort": "cycle"}, [report])
        bridge.respond = lambda request: "none" if "q1" in str(request.schema) else plain_reply(request)
        await uvm.missions.ask({"text": "Who built it?", "persona": "BRICK", "effort": "cycle"})
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
        assert set(EVENTS[event].keys) <= keys.keys() <= EVENTS[event].known_keys, event
    # Nothing is remembered here: tests/memory/test_backfill.py has what is told of vectors.
    # A scripted model lies nowhere: tests/inference/test_placement.py has what is told of memory.
    generation = {name for name in EVENTS if name.startswith(("approval.", "cell.", "effect.", "guardian.", "method."))}
    assert heard.names == set(EVENTS) - {*ELSEWHERE, *generation}


UNLISTED = Event("mission.tokn", MissionRetracted)


@pytest.mark.parametrize(
    ("event", "keys"),
    [(MISSION_STATUS, {"mission": "m-1"}), (MISSION_RETRACTED, {"mission": "m-1", "pth": "x"}), (UNLISTED, {})],
    ids=["missing", "unknown", "unlisted"],
)
def test_a_test_sees_what_is_told_wrongly(
    event: Event[Any], keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is missing or unknown and an event that is not listed raise where a test runs, and nowhere else."""
    with pytest.raises(InternalError, match=event.name):
        Events().emit(event, keys)
    monkeypatch.delenv("BATOS_DEBUG_EVENTS")
    Events().emit(event, keys)


async def test_the_order_of_a_missions_life(tmp_path: Path) -> None:
    """It is accepted, runs, is routed, passes its states, is committed, and only then called done."""
    heard = EventRecorder()
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
    heard = EventRecorder()
    async with scripted_uvm(tmp_path, events=Events(heard)) as uvm:
        with pytest.raises(ConflictError), uvm.image.transaction("m-1"):
            raise ConflictError("somebody else was first")
    assert ("txn.conflict", {"what": "m-1"}) in heard


#: Who may subscribe: progress, counters, the relay, the bulletin, and the verb that tells its asker of methods in the
#: making. The log is in `Events` itself.
WATCHERS = {
    "batos/uvm.py": 1,
    "batos/missions/mission_events.py": 2,
    "batos/server/dispatch/method_changes.py": 1,
    "batos/server/zmq/server.py": 1,
}


def test_nobody_acts_on_an_event() -> None:
    """Subscribers only watch; who acts on something is woken by a signal (batos.concurrency.jobs)."""
    source = Path(__file__).resolve().parents[1] / "src"
    found = {
        str(path.relative_to(source)): count
        for path in sorted(source.glob("batos/**/*.py"))
        if (count := path.read_text().count("events.subscribe("))
    }
    assert found == WATCHERS
