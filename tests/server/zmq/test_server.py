"""The server on real sockets: peers of every kind, wrong messages, slow and vanished readers, its end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.cli.wire_server import ANY, QUICK, Raw, ScriptedUvm, WireServer, eventually, wire_server
from tests.waiting import HANG

from batos.client.addresses import parse_listening
from batos.config import Settings
from batos.protocol import wire_messages
from batos.protocol.errors import ConfigError
from batos.protocol.event_payloads import (
    INFERENCE_START,
    MISSION_STATUS,
    MISSION_TOKEN,
    TXN_COMMIT,
    InferenceStart,
    MissionStatus,
    MissionToken,
    TransactionCommit,
)
from batos.server.zmq.outbox import MOST_EVENTS
from batos.server.zmq.server import ServerLimits


def _played(tmp_path: Path, **more: Any) -> ScriptedUvm:
    return ScriptedUvm(Settings(home=tmp_path, user="tester", attachment_bytes=2**20), prompt=False, **more)


def _only(wire: WireServer) -> str:
    return next(iter(wire.mind.found))


def _begun(wire: WireServer) -> bool:
    return any(each.startswith("begin") for each in wire.mind.calls)


async def _hear(wire: WireServer, watcher: Raw) -> None:
    """Subscribe a watcher to everything; a subscription takes a moment to arrive."""
    watcher.socket.subscribe(b"")
    while not await watcher.socket.poll(20):
        wire.mind.events.emit(TXN_COMMIT, TransactionCommit(what="probe", seconds=0.1))


# -- peers


async def test_a_dealer_is_answered_as_it_asks(tmp_path: Path) -> None:
    """Without the empty frame and with it: the reply has the same form, and the request's id."""
    async with wire_server(tmp_path) as wire:
        with wire.raw() as peer:
            await peer.ask("hello", name="a")
            (plain,) = await peer.frames()
            assert json.loads(plain)["id"] == "a"
            await peer.say(b"", json.dumps({"v": 1, "id": "b", "verb": "hello"}).encode())
            empty, body = await peer.frames()
            assert empty == b""
            assert json.loads(body).items() >= {"v": 1, "id": "b", "kind": "result", "seq": 1, "attempt": 1}.items()


async def test_a_req_peer_gets_the_one_reply_that_it_can_take(tmp_path: Path) -> None:
    """A REQ socket takes one reply a request: it gets the last, and may ask again at once."""
    async with wire_server(tmp_path) as wire:
        with wire.raw(zmq.REQ) as peer:
            for number in range(3):
                await peer.ask("submit", {"brief": {"text": f"question {number}"}, "follow": True})
                reply = await peer.reply()
                assert (reply["kind"], reply["data"]["status"]) == ("result", "done")


async def test_a_submission_is_acknowledged_then_told_then_answered(tmp_path: Path) -> None:
    """The replies to a followed mission are numbered without a gap: ack, events, result."""
    async with wire_server(tmp_path) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            replies = await peer.until("result")
            assert [each["seq"] for each in replies] == list(range(1, len(replies) + 1))
            assert replies[0]["kind"] == "ack"
            assert replies[0]["data"] == {"mission": _only(wire)}
            told = [each["event"] for each in replies if each["kind"] == "event"]
            assert told == ["mission.accepted", "mission.status", "mission.status"]
            assert replies[-1]["data"]["answer"]


async def test_a_replayed_attempt_says_so_and_takes_back_what_was_streamed(tmp_path: Path) -> None:
    """When a mission runs again, its replies carry the new attempt, after the streamed text was retracted."""
    async with wire_server(tmp_path, _played(tmp_path)) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await eventually(lambda: _begun(wire))
            mission = _only(wire)
            wire.mind.events.emit(MISSION_TOKEN, MissionToken(mission=mission, path="weave", text="half an ans"))
            wire.mind.say(mission, "running", attempt=2)
            wire.mind.finish(mission)
            replies = await peer.until("result")
            events = [(each["event"], each["attempt"]) for each in replies if each["kind"] == "event"]
            assert events[-3:] == [("mission.retracted", 1), ("mission.status", 2), ("mission.status", 2)]
            assert replies[-1]["attempt"] == 2


async def test_tokens_are_for_who_asked_or_waits_alone(tmp_path: Path) -> None:
    """Another client hears nothing of them, nor do watchers; one that waits and follows does."""
    async with wire_server(tmp_path, _played(tmp_path)) as wire:
        with wire.raw() as asker, wire.raw() as waiter, wire.raw() as other, wire.raw(zmq.SUB) as watcher:
            await _hear(wire, watcher)
            await asker.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await eventually(lambda: _begun(wire))
            mission = _only(wire)
            await waiter.ask("wait", {"mission": mission, "follow": True})
            await other.ask("wait", {"mission": mission})
            assert (await waiter.reply())["data"] == {"mission": mission, "status": "running", "attempt": 1}
            assert (await other.reply())["kind"] == "ack"
            wire.mind.events.emit(MISSION_TOKEN, MissionToken(mission=mission, path="weave", text="secret"))
            wire.mind.events.emit(MISSION_TOKEN, MissionToken(mission="m-another", path="weave", text="secret"))
            wire.mind.finish(mission)
            for peer, tokens in ((asker, 1), (waiter, 1), (other, 0)):
                replies = await peer.until("result")
                assert sum(each.get("event") == "mission.token" for each in replies) == tokens
            topics, body = list[bytes](), b""
            while b'"done"' not in body:
                topic, body = await watcher.frames()
                topics.append(topic)
            assert not any(b"token" in topic for topic in topics)


async def test_watchers_see_every_event_under_its_topic_numbered(tmp_path: Path) -> None:
    """Missions have a topic and a count of their own, the rest is the system's."""
    async with wire_server(tmp_path) as wire:
        with wire.raw(zmq.SUB) as watcher:
            await _hear(wire, watcher)
            for mission in ("m-1", "m-2", "m-1"):
                wire.mind.events.emit(MISSION_STATUS, MissionStatus(mission=mission, status="running", reason=None))
            wire.mind.events.emit(INFERENCE_START, InferenceStart(mission="m-1", path="p", model="m"))
            told: list[tuple[str, Any]] = []
            while len(told) < 4:
                topic, body = await watcher.frames()
                if not topic.startswith(b"system"):
                    told.append((topic.decode(), json.loads(body)))
    assert [(topic, notice["seq"]) for topic, notice in told] == [
        ("mission.m-1.status", 1),
        ("mission.m-2.status", 1),
        ("mission.m-1.status", 2),
        ("mission.m-1.inference.start", 3),
    ]
    assert told[0][1].keys() == {"v", "seq", "at", "event", "mission", "status", "reason"}
    assert told[0][1]["at"].endswith("Z")


# -- wrong messages


@pytest.mark.parametrize(
    ("frames", "field"),
    [
        ([b"{"], None),
        ([b""], None),
        ([b"", b""], None),
        ([b"", b"{}", b"{}"], None),
        ([b"{}", b"{}"], None),
        ([b"\xff" * 9] * 40, None),
        ([b'{"v":2,"id":"x","verb":"hello"}'], "v"),
        ([b'{"v":1,"id":"x","verb":"moo"}'], "verb"),
        ([b'{"v":1,"id":"x","verb":"wait","args":{"mission":1}}'], "args.mission"),
        ([b"[" * 200], None),
        ([b'"' + b"x" * wire_messages.MESSAGE_BYTES + b'"'], None),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_is_wrong_is_told_and_the_next_is_answered(
    tmp_path: Path, frames: list[bytes], field: str | None
) -> None:
    """Whatever a peer sends: an error of the protocol with a remedy, then a good answer to a good request."""
    async with wire_server(tmp_path) as wire:
        with wire.raw() as peer:
            await peer.say(*frames)
            told = await peer.reply()
            assert told["kind"] == "error"
            assert told["error"]["code"] == "protocol"
            assert told["error"].get("field") == field
            assert told["error"]["remedy"]
            assert told["id"] == ("x" if field else None)
            await peer.ask("hello")
            assert (await peer.reply())["kind"] == "result"
        await eventually(lambda: wire.server.under_way == 0)


async def test_a_message_of_countless_frames_is_passed_over(tmp_path: Path) -> None:
    """Its sender is told; the server keeps none of them, and another client is answered meanwhile."""
    async with wire_server(tmp_path) as wire:
        with wire.raw() as flood, wire.raw() as good:
            await flood.say(*[b"x"] * 5_000)
            await good.ask("hello")
            assert (await good.reply())["kind"] == "result"
            assert (await flood.reply())["error"]["code"] == "protocol"
            await flood.ask("hello")
            assert (await flood.reply())["kind"] == "result"


async def test_who_sends_far_too_much_is_cut_off_alone(tmp_path: Path) -> None:
    """A frame beyond what is read at all ends that connection; others notice nothing."""
    async with wire_server(tmp_path) as wire:
        with wire.raw() as huge, wire.raw() as good:
            await good.ask("hello")
            assert (await good.reply())["kind"] == "result"
            await huge.say(b"x" * (QUICK.frame + 1))
            await good.ask("hello")
            assert (await good.reply())["kind"] == "result"


async def test_an_id_that_is_under_way_is_not_taken_twice(tmp_path: Path) -> None:
    """Two requests of one name could not be told apart by their replies."""
    async with wire_server(tmp_path, _played(tmp_path)) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True}, "same")
            await peer.until("ack")
            await peer.ask("hello", name="same")
            (error,) = [each for each in await peer.until("error") if each["kind"] == "error"]
            assert error["error"]["field"] == "id"
            wire.mind.finish(_only(wire))
            assert (await peer.until("result"))[-1]["data"]["status"] == "done"


async def test_more_requests_than_may_be_under_way_are_told_busy(tmp_path: Path) -> None:
    """Of one peer, and of all together: busy, to be asked again; what is under way goes on."""
    limits = ServerLimits(peer=3, total=4, look=0.005)
    async with wire_server(tmp_path, _played(tmp_path), limits) as wire:
        with wire.raw() as greedy, wire.raw() as other:
            for number in range(4):
                await greedy.ask("submit", {"brief": {"text": "why?"}, "follow": True}, str(number))
            error = (await greedy.until("error"))[-1]["error"]
            assert (error["code"], error["retry"]) == ("busy", True)
            await other.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await other.until("ack")
            await other.ask("hello", name="2")
            assert (await other.until("error"))[-1]["error"]["code"] == "busy"
            for mission in wire.mind.found:
                wire.mind.finish(mission)
            assert (await other.until("result"))[-1]["data"]["status"] == "done"
        await eventually(lambda: wire.server.under_way == 0)


async def test_every_request_that_is_refused_is_told_so_also_to_a_slow_reader(tmp_path: Path) -> None:
    """A peer that asks thousands of things and reads none finds an answer to each, once more waits than events may."""
    async with wire_server(tmp_path, _played(tmp_path), ServerLimits(peer=1, look=0.001)) as wire:
        with wire.raw(rcvhwm=1, rcvbuf=4_096, sndhwm=0) as peer, wire.raw() as good:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True}, "first")
            await peer.until("ack")
            burst, sent, events = zmq.Socket(shadow=peer.socket), 0, MOST_EVENTS * 400
            # Until the network's own room, whatever it is here, and that of events are used up.
            while wire.server.waiting_bytes <= events and sent < 40_000:
                for number in range(sent, sent + 100):
                    burst.send(wire_messages.encode({"v": 1, "id": f"{number:0100}", "verb": "hello", "args": {}}))
                sent += 100
                await good.ask("hello")
                await good.reply()
            assert wire.server.waiting_bytes > events
            async with asyncio.timeout(HANG):
                told = [(await peer.until("error"))[-1] for _ in range(sent)]
            assert {each["error"]["code"] for each in told} == {"busy"}
            assert len({each["id"] for each in told}) == sent
            wire.mind.finish(_only(wire))
            await peer.until("result")


async def test_a_port_that_nobody_asked_for_is_another_where_it_is_taken(tmp_path: Path) -> None:
    """A second home's server listens beside the first one's."""
    async with wire_server(tmp_path) as wire:
        taken = (replace(wire.places.bind, may_be_another=True), replace(wire.places.events, may_be_another=True))
        async with wire.server.__class__(wire.dispatcher, wire.ring).serving(*taken) as places:
            ports = {each.port for each in (places.bind, places.events, *taken)}
            assert len(ports) == 4
            assert 0 not in ports
            await asyncio.sleep(0)  # its loops begin


async def test_a_fault_of_ours_is_told_as_one_and_harms_nobody_else(tmp_path: Path) -> None:
    """An error that nobody foresaw reaches its asker as `internal`; the server goes on."""

    class BrokenUvm(ScriptedUvm):
        def status(self, user: str | None = None) -> dict[str, Any]:
            raise ZeroDivisionError("what was that?")

    async with wire_server(tmp_path, BrokenUvm(Settings(home=tmp_path, user="tester"))) as wire:
        with wire.raw() as peer:
            await peer.ask("status")
            assert (await peer.reply())["error"]["code"] == "internal"
            await peer.ask("hello")
            assert (await peer.reply())["kind"] == "result"


# -- slow and vanished readers


async def test_a_slow_reader_loses_events_visibly_and_gets_its_end(tmp_path: Path) -> None:
    """A peer that does not read holds nobody up and fills no memory; later it sees a gap, and the result."""
    async with wire_server(tmp_path, _played(tmp_path)) as wire:
        with wire.raw(rcvhwm=1, rcvbuf=4096) as slow, wire.raw() as good:
            await slow.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await eventually(lambda: _begun(wire))
            mission = _only(wire)
            most = 0
            for number in range(10_000):
                wire.mind.events.emit(
                    MISSION_TOKEN, MissionToken(mission=mission, path="weave", text=f"{number:8}" * 200)
                )
                most = max(most, wire.server.waiting_bytes)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            assert 0 < most < 2 * 2**20
            await good.ask("hello")
            assert (await good.reply())["kind"] == "result"
            wire.mind.finish(mission)
            replies = await slow.until("result")
            numbers = [each["seq"] for each in replies]
            assert numbers == sorted(numbers)
            assert len(numbers) < numbers[-1]
            assert replies[-1]["data"]["status"] == "done"
        await eventually(lambda: wire.server.under_way == 0 and wire.server.waiting_bytes == 0)


async def test_a_flood_of_wrong_messages_that_nobody_reads_back_is_bounded(tmp_path: Path) -> None:
    """Errors are lost to a peer that does not read them; the server keeps no heap of them."""
    async with wire_server(tmp_path) as wire:
        with wire.raw(rcvhwm=1, rcvbuf=4096, sndhwm=10_000) as flood, wire.raw() as good:
            for _ in range(MOST_EVENTS * 20):
                await flood.say(b"x" * 100)
            await good.ask("hello")
            assert (await good.reply())["kind"] == "result"
            assert wire.server.waiting_bytes < 2**20
            assert wire.server.under_way <= QUICK.peer


async def test_a_peer_that_vanishes_is_forgotten_and_its_mission_goes_on(tmp_path: Path) -> None:
    """Its subscription ends with the first thing that it is told in vain; what it asked for is still worked on."""
    async with wire_server(tmp_path, _played(tmp_path), ServerLimits(beat=0.05, look=0.005)) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await peer.until("ack")
            assert wire.server.under_way == 1
        await eventually(lambda: wire.server.under_way == 0)
        mission = _only(wire)
        assert wire.mind.found[mission]["status"] == "running"
        wire.mind.finish(mission)
        with wire.raw() as later:
            await later.ask("wait", {"mission": "last"})
            assert (await later.until("result"))[-1]["data"]["status"] == "done"


async def test_a_peer_that_waits_is_told_that_the_server_lives(tmp_path: Path) -> None:
    """While nothing happens, a beat comes now and then."""
    async with wire_server(tmp_path, _played(tmp_path), ServerLimits(beat=0.02)) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            told = [json.loads((await peer.frames())[-1])]
            while len(told) < 5 or told[-1].get("event") != "beat":
                told.append(json.loads((await peer.frames())[-1]))
            assert [each["seq"] for each in told] == list(range(1, len(told) + 1))


async def test_a_long_result_reaches_its_reader(tmp_path: Path) -> None:
    """Results may be far longer than requests."""

    class Wordy(ScriptedUvm):
        def prompts(self, mission: str) -> list[dict[str, Any]]:
            return [{"text": "x" * 2**20}] * 6

    async with wire_server(tmp_path, Wordy(Settings(home=tmp_path, user="tester"))) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}})
            await peer.until("result")
            for number in range(3):
                await peer.ask("show", {"mission": "last", "prompts": True}, f"long {number}")
            for _ in range(3):
                assert len((await peer.reply())["data"]["prompts"]) == 6


# -- where it listens, and its end


async def test_a_server_that_ends_tells_those_who_wait(tmp_path: Path) -> None:
    """What is under way ends with `no_server`, which a client takes as: ask again when it is back."""
    mind = _played(tmp_path)
    async with wire_server(tmp_path, mind) as wire:
        with wire.raw() as peer:
            await peer.ask("submit", {"brief": {"text": "why?"}, "follow": True})
            await peer.until("ack")
            ending = asyncio.create_task(wire.server._stop([]))
            assert (await peer.until("error"))[-1]["error"]["code"] == "no_server"
            await ending


async def test_a_taken_port_names_the_setting_and_what_to_do(tmp_path: Path) -> None:
    """Both sockets: a clear error, and nothing is left open."""
    async with wire_server(tmp_path) as wire:
        taken = str(wire.places.bind)
        for field, places in (("bind", (taken, ANY)), ("events", (ANY, taken))):
            with pytest.raises(ConfigError, match="another process listens") as refused:
                async with wire.server.__class__(wire.dispatcher, wire.ring).serving(
                    parse_listening(places[0], "bind"), parse_listening(places[1], "events")
                ):
                    pass
            assert refused.value.field == field
            assert f"--{field}" in refused.value.remedy
            assert f"(0 is a free one), or {field} in batos.toml" in refused.value.remedy


async def test_an_address_of_another_machine_cannot_be_bound(tmp_path: Path) -> None:
    """An address that this machine does not have is a wrong setting."""
    with pytest.raises(ConfigError, match="not possible") as refused:
        async with wire_server(tmp_path, bind="tcp://192.0.2.1:7717"):
            pass
    assert refused.value.field == "bind"


async def test_no_heartbeats_of_the_library_are_on(tmp_path: Path) -> None:
    """They end the process where a peer vanishes while its messages wait to be read; the kernel looks instead."""
    async with wire_server(tmp_path) as wire, wire.client() as client:
        assert client._line._connection is not None
        for socket in (wire.server._router, client._line._connection._socket):
            assert (socket.heartbeat_ivl, socket.tcp_keepalive) == (0, 1)
