"""Counters: every event adds up, in memory or written, over restarts, and never more than is kept."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.minds.scripted import BAD, Script, ask, submit
from tests.waiting import a_moment, until

from batos.events import Events
from batos.image import roots
from batos.image.ids import mission_id, utc_now
from batos.image.image import LivingImage
from batos.image.ownership import DOOR
from batos.missions import counters
from batos.missions.counters import DAYS, FAILURES, FIRST_TOKEN, MISSION, SAMPLES, Counters, add_counts
from batos.protocol.errors import BatosError, Busy, DiskFull, StreamCut
from batos.protocol.event_payloads import EVENTS
from batos.protocol.image_documents import CountersDocument
from batos.testing import ScriptedBridge, scripted_uvm

numbers = st.integers(0, 1000)
counts = st.recursive(
    st.fixed_dictionaries({}, optional={"calls": numbers, "busy": numbers, "queue_highest": numbers}),
    lambda inner: st.fixed_dictionaries({}, optional={"gate": inner, "missions": inner}),
    max_leaves=4,
)


@given(one=counts, two=counts, three=counts)
def test_counts_add_up_in_any_order(one: Any, two: Any, three: Any) -> None:
    """Adding is associative and commutative, nothing is neutral, and what is added to is left as it was."""
    before = repr((one, two))
    assert add_counts(add_counts(one, two), three) == add_counts(one, add_counts(two, three))
    assert add_counts(one, two) == add_counts(two, one)
    assert add_counts(one, {}) == one == add_counts({}, one)
    assert repr((one, two)) == before


def shown(image: LivingImage, counters: Counters) -> CountersDocument:
    """All that was counted."""
    with image.snapshot() as root:
        return counters.snapshot(root)


async def test_what_missions_do_is_counted(tmp_path: Path) -> None:
    """By persona and status, calls and tokens, what the journal served, the gate's verdicts, failures by code."""
    script = Script()
    bridge = ScriptedBridge(script)
    async with scripted_uvm(tmp_path, bridge, queue=1) as uvm:
        done = await ask(uvm)
        script.woven = BAD
        revised = await ask(uvm)
        bridge.respond = lambda request: StreamCut("it was cut")
        with pytest.raises(StreamCut):
            await ask(uvm)
        waits = await submit(uvm)
        with pytest.raises(Busy):
            await submit(uvm)
        await uvm.missions.cancel(waits)
        found = uvm.status()
        total = found["counters"]
        assert total["missions"] == {"BRICK": {"done": 2, "failed": 1}, "none": {"cancelled": 1}}
        assert (total["accepted"], total["busy"], total["queue_highest"]) == (4, 1, 1)
        assert total["calls"] == len(bridge.history)
        for name in ("prompt_tokens", "answer_tokens"):
            assert total[name] == done["cost"][name] + revised["cost"][name]
        assert total["failures"] == {"stream_cut": 1}
        assert all(verdict == {"passed": 2} for verdict in total["gate"].values())
        assert total["revised"] == 1
        assert sum(total["mission"]["counts"]) == 2
        assert sum(total["first_token"]["counts"]) == done["cost"]["calls"] + revised["cost"]["calls"]
        (failure,) = found["failures"]
        assert (failure["status"], failure["reason"]["code"]) == ("failed", "stream_cut")
        (day,) = found["days"].values()
        assert day["calls"] == total["calls"]
        assert day["missions"] == total["missions"]


async def test_what_people_asked_is_kept_apart_by_day(tmp_path: Path) -> None:
    """Of a mission that the mind asked itself nothing is in it, whether it was answered or failed."""
    script = Script()
    bridge = ScriptedBridge(script)
    origin = {"door": DOOR, "client": "items d-1"}
    async with scripted_uvm(tmp_path, bridge) as uvm:
        asked = [await ask(uvm) for script.woven in (script.woven, BAD)]
        await ask(uvm, origin=origin)
        bridge.respond = lambda request: StreamCut("it was cut")
        for of in ({"door": "api"}, origin):
            with pytest.raises(StreamCut):
                await ask(uvm, origin=of)
        (day,) = uvm.status()["days"].values()
        assert day["missions"] == {"BRICK": {"done": 3, "failed": 2}}
        tokens = sum(each["cost"]["prompt_tokens"] + each["cost"]["answer_tokens"] for each in asked)
        assert day["asked"] == {"ended": 3, "tokens": tokens, "loads": 0, "revised": 1, "failures": {"stream_cut": 1}}


async def test_what_becomes_of_intents_is_counted() -> None:
    """Verdicts and the rules that refused, repairs, mutants, installs, kills by limit and methods that went."""
    told: list[tuple[str, dict[str, Any]]] = [
        ("guardian.verdict", {"accepted": False, "faults": ["covenant", "covenant", "name"]}),
        ("method.repair", {}),
        ("guardian.verdict", {"accepted": True, "faults": []}),
        ("method.tried", {"mutants": 4, "killed": 3}),
        ("method.installed", {}),
        ("cell.kill", {"limit": "time"}),
        ("method.retired", {}),
    ]
    async with open_image(None) as image:
        counters = Counters(image.writer.apply, utc_now)
        for event, keys in told:
            counters.on_event(event, keys)
        found = shown(image, counters)
        await counters.job.stop()
    assert found["total"] == {
        "verdicts": {"refused": 1, "accepted": 1},
        "refusals": {"covenant": 1, "name": 1},
        "repairs": 1,
        "mutants": 4,
        "mutants_killed": 3,
        "installs": 1,
        "kills": {"time": 1},
        "retired": 1,
    }
    day = {"repairs": 1, "installs": 1, "retired": 1, "verdicts": {"accepted": 1, "refused": 1}}
    assert list(found["days"].values()) == [day]


async def test_transitions_and_commits_are_counted(tmp_path: Path) -> None:
    """Each state of each mind, and each commit by what it was of."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        await ask(uvm)
        await uvm.counters.flush()
        total = uvm.status()["counters"]
        assert total["transitions"] == {
            "IDLE": 2,
            **dict.fromkeys(("DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE"), 1),
        }
        assert total["commits"]["thoughts"] == 1
        assert min(total["commits"]["image"], total["commits"]["journal"]) >= 1


async def test_that_counts_were_written_is_no_reason_to_write() -> None:
    """A commit is counted and waits for what else there is: else each batch of counts would make the next one due."""
    written: list[object] = []

    async def apply(change: Any) -> Any:
        written.append(change)

    counters = Counters(apply, utc_now, every=0)
    counters.job.start()
    counters.on_event("txn.commit", {"what": "image", "changes": 2, "seconds": 0.1})
    await a_moment()
    await counters.job.stop()
    assert written == []
    counters.on_event("txn.abort", {"what": "m-1", "reason": "doomed"})
    await counters.job.stop()
    assert len(written) == 1


async def test_what_the_journal_serves_is_counted_apart(tmp_path: Path) -> None:
    """A mission with an ancestor pays for nothing twice, and its tokens are not counted twice."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await ask(uvm)
        before = uvm.status()["counters"]["prompt_tokens"]
        await ask(uvm, ancestor=first["id"])
        total = uvm.status()["counters"]
        assert (total["from_journal"], total["calls"], total["prompt_tokens"]) == (5, 5, before)


async def test_a_failed_thought_takes_no_count_back(tmp_path: Path) -> None:
    """What a doomed mission spent is in the totals, also after a restart."""
    script = Script(woven=BatosError("no"))
    async with scripted_uvm(tmp_path, ScriptedBridge(script), memory=False) as uvm:
        with pytest.raises(BatosError):
            await ask(uvm)
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        total = uvm.status()["counters"]
        assert total["calls"] == 5
        assert total["failures"] == {"error": 1}


async def test_counts_are_written_in_batches() -> None:
    """A thousand events are one commit a few seconds later, and what is shown is the same before and after it."""
    told: list[str] = []
    async with open_image(None, events=Events(lambda event, keys: told.append(event))) as image:
        counters = Counters(image.writer.apply, utc_now, every=0.01)
        counters.job.start()
        for _ in range(1000):
            counters.on_event("queue.busy", {"user": "me"})
        told.clear()
        before = shown(image, counters)
        assert before["total"] == {"busy": 1000}
        await until(lambda: told, "the commit")
        assert shown(image, counters) == before
        await counters.job.stop()
        assert told == ["txn.commit"]
        with image.snapshot() as root:
            assert root[roots.COUNTERS]["total"] == {"busy": 1000}


async def test_what_is_counted_during_a_write_is_written_by_the_next() -> None:
    """No later event is needed, and no two writes are under way at once."""
    under_way, on, written = asyncio.Event(), asyncio.Event(), list[Any]()

    async def apply(change: Any) -> Any:
        under_way.set()
        await on.wait()
        written.append(change)

    counters = Counters(apply, utc_now, every=0.01)
    counters.job.start()
    counters.on_event("queue.busy", {"user": "me"})
    await under_way.wait()
    counters.on_event("queue.busy", {"user": "me"})
    await a_moment()
    assert not written
    on.set()
    await until(lambda: len(written) >= 2, "the second write")
    await counters.job.stop()
    assert len(written) == 2


@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_being_written_is_shown_once(fails: bool) -> None:
    """While a commit is under way, when it is through, and to a reader whose view of the image is older than it."""
    under_way, on = asyncio.Event(), asyncio.Event()

    async def apply(change: Any) -> Any:
        under_way.set()
        await on.wait()
        if fails:
            raise DiskFull("no room")
        return await image.writer.apply(change)

    async with open_image(None) as image:
        counters = Counters(apply, utc_now, every=3_600)
        counters.on_event("queue.busy", {"user": "me"})
        with image.snapshot() as older:
            flushing = asyncio.create_task(counters.flush())
            await under_way.wait()
            assert shown(image, counters)["total"] == {"busy": 1}
            counters.on_event("queue.busy", {"user": "me"})
            assert shown(image, counters)["total"] == {"busy": 2}
            on.set()
            with pytest.raises(DiskFull) if fails else nullcontext():
                await flushing
            assert counters.snapshot(older)["total"] == shown(image, counters)["total"] == {"busy": 2}
        fails = False
        await counters.job.stop()
        assert set(shown(image, counters)) == {"total", "days", "vram", "failures"}
        with image.snapshot() as root:
            assert root[roots.COUNTERS]["total"] == shown(image, counters)["total"] == {"busy": 2}


async def test_what_cannot_be_written_is_counted_on() -> None:
    """On a full disk nothing is lost of the counts while the process lives, and they are written when there is room."""
    full = True

    async def apply(change: Any) -> Any:
        if full:
            raise DiskFull("no room")
        return await image.writer.apply(change)

    async with open_image(None) as image:
        counters = Counters(apply, utc_now, every=3_600)
        for _ in range(3):
            counters.on_event("queue.busy", {"user": "me"})
            with pytest.raises(DiskFull):
                await counters.flush()
        assert shown(image, counters)["total"] == {"busy": 3}
        full = False
        counters.on_event("txn.conflict", {"what": "m-1"})
        await counters.job.stop()
        with image.snapshot() as root:
            assert root[roots.COUNTERS]["total"] == {"busy": 3, "conflicts": 1}


async def test_only_the_newest_is_kept() -> None:
    """Of samples, failures and days there are never more than the limits, the newest first; totals have all."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    async with open_image(None) as image:
        counters = Counters(image.writer.apply, lambda: moment, every=3_600)
        sample = {"runner": "r", "where": "card", "size": 1, "size_vram": 1}
        many = max(DAYS, SAMPLES, FAILURES) + 10
        for number in range(many):
            moment += timedelta(days=1)
            mission = mission_id(moment)
            counters.on_event("vram.sample", {"model": f"m{number}", **sample})
            counters.on_event("vram.spill", {"model": f"m{number}", **sample})
            keys = {"mission": mission, "status": "failed", "reason": BatosError("no").as_dict()}
            counters.on_event("mission.failed", keys)
            if number % 7 == 0:
                await counters.flush()
        found = shown(image, counters)
        await counters.job.stop()
        assert shown(image, counters) == found
    assert [each["model"] for each in found["vram"]] == [f"m{number}" for number in reversed(range(many))][:SAMPLES]
    assert len(found["failures"]) == FAILURES
    assert found["failures"][0]["mission"] == mission
    assert len(found["days"]) == DAYS
    assert max(found["days"]) == moment.isoformat()[:10]
    assert found["total"]["spills"] == many
    assert found["total"]["failures"] == {"error": many}


async def _nowhere(change: Any) -> Any:
    """Writes nothing."""


@given(seconds=st.floats(0, 10_000))
def test_a_time_is_in_one_bucket(seconds: float) -> None:
    """The first whose bound is not below it, else the last; the sum has every one."""
    counters = Counters(_nowhere, utc_now)
    for name, bounds in (("first_token", FIRST_TOKEN), ("mission", MISSION)):
        counters._observe(name, seconds, bounds)
        histogram = counters._pending["total"][name]
        bucket = histogram["counts"].index(1)
        assert len(histogram["counts"]) == len(bounds) + 1
        assert sum(histogram["counts"]) == 1
        assert bucket == len(bounds) or seconds <= bounds[bucket]
        assert bucket == 0 or seconds > bounds[bucket - 1]
        assert histogram["seconds"] == seconds


def test_each_handler_takes_the_payload_of_its_event() -> None:
    """A type checker cannot see which event a handler stands under; here both are compared.

    A row of the table has no types: it is given what its event tells, and reads nothing else.
    """
    samples: dict[Any, Any] = {str: "x", int: 1, float: 1.0}
    counting = Counters(_nowhere, utc_now)
    for event, count in counters._COUNTED.items():
        payload = EVENTS[event].payload
        hints = get_type_hints(count)
        if hints:
            assert hints["keys"] is payload, event
        else:
            count(counting, {name: samples.get(hint) for name, hint in get_type_hints(payload).items()})
