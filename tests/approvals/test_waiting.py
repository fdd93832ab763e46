"""Missions that wait for a person: without a connection, steered like any other, and nothing of them is paid twice."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.approvals.coder_bridge import BRICK, CYCLE, FACET, MESSAGE, QUESTION, Coding, Days, waiting, waits
from tests.methods.execution.method_mind import put

from batos.approvals import documents
from batos.image.ids import iso
from batos.image.roots import named_objects
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.protocol.errors import GenerationFailed, NotFound, Refused
from batos.testing import scripted_uvm
from batos.uvm import UVM, Seams


@pytest.fixture
async def bridge() -> Coding:
    """A coder, and a mind."""
    return Coding()


@pytest.fixture
async def uvm(tmp_path: Path, bridge: Coding) -> AsyncIterator[UVM]:
    """A mind in memory that is there to work."""
    async with scripted_uvm(tmp_path, bridge, install="ask", method_control=0) as uvm:
        uvm.approvals.keep(uvm.missions.enqueue)
        yield uvm


def slot(uvm: UVM) -> Any:
    """What the facet's slot holds: an Intent or a Method."""
    with uvm.image.snapshot() as root:
        return type(own_slots(named_objects(root)[BRICK])[FACET])


async def test_a_mission_waits_and_goes_on(uvm: UVM, bridge: Coding) -> None:
    """It is told for what it waits, holds nothing meanwhile, runs the approved methods, and pays for nothing twice."""
    mission = await waits(uvm, CYCLE)
    asked = waiting(uvm)
    reason = uvm.readings.mission(mission)["reason"]
    assert (reason["code"], sorted(reason["approvals"])) == ("approval_needed", sorted(each["id"] for each in asked))
    assert [each["missions"] for each in asked] == [[mission]] * 3
    assert not uvm.workers.has(mission)
    assert (bridge.written, bridge.thought) == (3, 1)
    assert [each["calls"] for each in uvm.readings.mission(mission)["provenance"]["generated"]] == [1] * 3
    await uvm.approvals.approve([each["id"] for each in asked[:2]], "ada")
    assert uvm.readings.mission(mission)["status"] == "waiting"  # one is still asked
    answered = await uvm.approvals.approve([asked[2]["id"]], "ada")
    assert answered.woken == (mission,)
    done = await uvm.missions.wait_for_end(mission)
    assert done["status"] == "done"
    assert [each["as"] for each in done["provenance"]["methods"]] == ["method"] * 3
    assert bridge.written == 3
    assert done["cost"]["from_journal"] == 1  # its decomposition
    learnt = done["provenance"]["generated"]
    assert [(each["outcome"], each["calls"]) for each in learnt] == [("asked", 1)] * 3  # of the attempt that waited
    questions = [str(request.messages) for request in bridge.history]
    assert len(questions) == len(set(questions))


async def test_a_record_that_cannot_be_read_ends_no_workers(uvm: UVM) -> None:
    """A mission whose reason is not read waits for its person like any other, and others are run."""
    outcomes, awaits_person, snapshot = uvm.workers._outcomes, uvm.workers._outcomes.awaits_person, uvm.image.snapshot
    unread = list[str]()

    def fail() -> Any:
        uvm.image.snapshot = snapshot  # type: ignore[method-assign]
        unread.append("once")
        raise OSError(errno.EIO, "just then")

    def ask_unread(mission: str) -> bool:
        uvm.image.snapshot = fail  # type: ignore[method-assign]
        return awaits_person(mission)

    outcomes.awaits_person = ask_unread  # type: ignore[method-assign]
    mission = await waits(uvm, CYCLE)
    outcomes.awaits_person = awaits_person  # type: ignore[method-assign]
    assert unread == ["once"]
    await uvm.approvals.approve([each["id"] for each in waiting(uvm)], "ada")
    assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
    assert (await uvm.missions.ask({**CYCLE, "policy": {"interpret": "allow"}}))["status"] == "done"


async def test_under_ask_nothing_that_was_not_approved_runs(uvm: UVM, bridge: Coding) -> None:
    """With interpretation allowed the mission goes on by it; what was made waits, and runs after the yes."""
    policy = {"install": "ask", "interpret": "allow"}
    first = await uvm.missions.ask({**MESSAGE, "policy": policy})
    assert [each["as"] for each in first["provenance"]["methods"]] == ["interpreted intent"]
    (asked,) = waiting(uvm)
    assert (asked["object"], asked["selector"], asked["missions"]) == (BRICK, FACET, [])
    assert slot(uvm) is Intent
    await uvm.missions.ask({**MESSAGE, "text": "again", "policy": policy})
    assert (bridge.written, len(waiting(uvm))) == (1, 1)  # what waits is not made again
    await uvm.approvals.approve([asked["id"]], "ada")
    assert slot(uvm) is Method
    third = await uvm.missions.ask({**MESSAGE, "text": "once more", "policy": policy})
    assert [each["as"] for each in third["provenance"]["methods"]] == ["method"]


async def test_eight_missions_wait_for_one_answer(uvm: UVM, bridge: Coding) -> None:
    """The method is made once and asked about once, and one yes lets all of them go on."""
    missions = await asyncio.gather(*(waits(uvm, {**MESSAGE, "text": f"number {each}"}) for each in range(8)))
    (asked,) = waiting(uvm)
    assert bridge.written == 1
    assert sorted(asked["missions"]) == sorted(missions)
    await uvm.approvals.approve([asked["id"]], "ada")
    ended = await asyncio.gather(*map(uvm.missions.wait_for_end, missions))
    assert {each["status"] for each in ended} == {"done"}
    assert bridge.written == 1


async def test_what_waits_is_shown_to_the_user_whose_it_is_alone(uvm: UVM) -> None:
    """The wish says what was asked: once another's mission waits for the same, it is for who may see both."""
    await waits(uvm, {**MESSAGE, "text": "mine", "user": "ann"})
    (asked,) = waiting(uvm)

    def seen(user: str) -> bool:
        with uvm.image.snapshot() as root:
            listed = documents.list_approvals(root, iso(uvm.clock()), 9, user=user)["approvals"]
            matched = documents.find_matching(root, "*", iso(uvm.clock()), user)
            try:
                documents.resolve_ids(root, [asked["id"]], user)
            except NotFound:
                assert not listed
                assert not matched
                return False
            return bool(listed and matched)

    assert (seen("ann"), seen("bob")) == (True, False)
    await waits(uvm, {**MESSAGE, "text": "too", "user": "bob"})
    assert (seen("ann"), seen("bob")) == (False, False)


async def test_a_council_asks_for_all_at_once(uvm: UVM, bridge: Coding) -> None:
    """Whatever its personas lack is asked about before it stops; one answer to all of it, and it runs to its end."""
    mission = await waits(uvm, {"text": QUESTION, "effort": "council"})
    names = [each["id"] for each in waiting(uvm)]
    assert len(names) == bridge.written == 12
    assert sorted(uvm.readings.mission(mission)["reason"]["approvals"]) == sorted(names)
    await uvm.approvals.approve(names, "ada")
    done = await uvm.missions.wait_for_end(mission)
    assert done["status"] == "done"
    assert {each["as"] for each in done["provenance"]["methods"]} == {"method"}
    questions = [(str(request.messages), str(request.schema)) for request in bridge.history]
    assert len(questions) == len(set(questions))


async def test_no_method_catches_the_question(uvm: UVM) -> None:
    """One that sends what must be approved first does not go on without: its mission waits like any other."""
    source = """
        async def outer_(self, text):
            try:
                return await self.tamland_facet_(text)
            except Exception:
                return "nobody needs to know"
    """
    await put(uvm, BRICK, outer_=source)
    message = {**MESSAGE["message"], "selector": "outer_"}
    mission = await waits(uvm, {"text": "say it", "message": message})
    await uvm.approvals.approve([waiting(uvm)[0]["id"]], "ada")
    done = await uvm.missions.wait_for_end(mission)
    assert (done["status"], "nobody" in done["answer"]) == ("done", False)


async def test_a_rejected_method_fails_its_part_with_the_reason(uvm: UVM, bridge: Coding) -> None:
    """The other facets run; the one that was rejected says who said no and why, and is not generated again."""
    mission = await waits(uvm, CYCLE)
    first, *others = waiting(uvm)
    await uvm.approvals.reject(first["id"], "ada", "too loud")
    await uvm.approvals.approve([each["id"] for each in others], "ada")
    done = await uvm.missions.wait_for_end(mission)
    assert done["status"] == "done"
    failed = [voice for voice in done["voices"] if "failure" in voice]
    assert [voice["facet"] for voice in failed] == [first["selector"]]
    assert "rejected by ada: too loud" in failed[0]["failure"]["message"]
    assert bridge.written == 3


async def test_a_rejected_message_fails_its_mission(uvm: UVM) -> None:
    """Where the method was all that was asked for."""
    mission = await waits(uvm, MESSAGE)
    await uvm.approvals.reject(waiting(uvm)[0]["id"], "ada", "too loud")
    failed = await uvm.missions.wait_for_end(mission)
    assert (failed["status"], failed["reason"]["code"]) == ("failed", GenerationFailed.code)
    assert "too loud" in failed["reason"]["message"]


async def test_what_nobody_answers_fails_in_its_time(tmp_path: Path) -> None:
    """The part fails because nobody answered; whoever asks after that is asked about anew."""
    clock = Days()
    async with scripted_uvm(tmp_path, Coding(), install="ask", seams=Seams(clock=clock)) as uvm:
        uvm.approvals.keep(uvm.missions.enqueue)
        mission = await waits(uvm, MESSAGE)
        name = uvm.readings.mission(mission)["reason"]["approval"]
        clock.pass_(7)
        await uvm.approvals.open()  # as when the timer rings
        failed = await uvm.missions.wait_for_end(mission)
        assert (failed["status"], failed["reason"]["code"]) == ("failed", GenerationFailed.code)
        assert name in failed["reason"]["message"]
        again = await waits(uvm, {**MESSAGE, "text": "again"})
        assert uvm.readings.mission(again)["reason"]["approval"] != name


@pytest.mark.parametrize("steer", ["cancel", "pause"])
async def test_one_that_waits_can_be_stopped(uvm: UVM, steer: str) -> None:
    """At once; the answer that comes later does not set it going, and a paused one goes on when it is resumed."""
    mission = await waits(uvm, MESSAGE)
    stopped = await getattr(uvm.missions, steer)(mission)
    assert stopped["status"] == {"cancel": "cancelled", "pause": "paused"}[steer]
    answered = await uvm.approvals.approve([waiting(uvm)[0]["id"]], "ada")
    assert answered.woken == ()
    assert uvm.readings.mission(mission)["status"] == stopped["status"]
    if steer == "cancel":
        with pytest.raises(Refused, match="cancelled"):
            await uvm.missions.resume(mission)
    else:
        await uvm.missions.resume(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"


async def test_resuming_does_not_answer(uvm: UVM, bridge: Coding) -> None:
    """One that waits is left waiting, and one that was paused waits again: for the same answer, nothing paid."""
    mission = await waits(uvm, MESSAGE)
    spent = len(bridge.history)
    assert (await uvm.missions.resume(mission))["status"] == "waiting"
    assert not uvm.workers.has(mission)
    await uvm.missions.pause(mission)
    await uvm.missions.resume(mission)
    again = await uvm.missions.wait_for_end(mission)
    assert (again["status"], len(waiting(uvm)), len(bridge.history)) == ("waiting", 1, spent)


async def test_a_deadline_ends_the_wait(tmp_path: Path) -> None:
    """It fails, timed out; the question stays, and its answer wakes nobody."""
    clock = Days()
    deadline = iso(clock.now + timedelta(hours=1))
    async with scripted_uvm(tmp_path, Coding(), install="ask", seams=Seams(clock=clock)) as uvm:
        mission = await waits(uvm, {**MESSAGE, "deadline": deadline})
        clock.pass_(1)
        uvm.workers.alarms.set(mission, deadline)  # as when the clock is looked at
        await asyncio.wait({uvm.workers.end(mission)})
        found = uvm.readings.mission(mission)
        assert (found["status"], found["reason"]["code"]) == ("failed", "timed_out")
        assert (await uvm.approvals.approve([waiting(uvm)[0]["id"]], "ada")).woken == ()


async def test_a_deadline_that_passed_while_nobody_was_there_ends_the_wait(tmp_path: Path) -> None:
    """The next process fails it, although a person may still answer."""
    clock = Days()
    deadline = iso(clock.now + timedelta(hours=1))
    async with scripted_uvm(tmp_path, Coding(), install="ask", memory=False, seams=Seams(clock=clock)) as uvm:
        mission = await waits(uvm, {**MESSAGE, "deadline": deadline})
    clock.pass_(1)
    async with scripted_uvm(tmp_path, Coding(), install="ask", memory=False, seams=Seams(clock=clock)) as uvm:
        assert await uvm.missions.recover() == []
        assert uvm.readings.mission(mission)["reason"]["code"] == "timed_out"
        assert len(waiting(uvm)) == 1


async def test_an_answer_that_comes_while_the_mission_is_on_its_way_out_is_heard(uvm: UVM) -> None:
    """Given when it is asked, about when the status is written: it goes on by itself, and is not left waiting."""
    answering: list[asyncio.Task[Any]] = []

    def told(event: str, keys: Any) -> None:
        if event == "approval.asked":
            answering.append(asyncio.ensure_future(uvm.approvals.approve([keys["approval"]], "ada")))

    uvm.events.subscribe(told)
    asked = await uvm.missions.ask({**MESSAGE, "policy": {"install": "ask", "interpret": "never"}})
    await asyncio.gather(*answering)
    done = await uvm.missions.wait_for_end(
        asked["id"]
    )  # where the answer was slower than the status it had to be woken
    assert done["status"] == "done"
    assert [each["as"] for each in done["provenance"]["methods"]] == ["method"]


async def test_after_a_restart_it_waits_on(tmp_path: Path) -> None:
    """No work is done for it; it goes on with the answer, whichever process is there then."""
    bridge = Coding()
    async with scripted_uvm(tmp_path, bridge, install="ask", memory=False) as uvm:
        mission = await waits(uvm, CYCLE)
        await uvm.approvals.approve([waiting(uvm)[0]["id"]], "ada")
    spent = len(bridge.history)
    async with scripted_uvm(tmp_path, bridge, install="ask", memory=False) as uvm:
        assert await uvm.missions.recover() == []
        assert not uvm.workers.has(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "waiting"
        answered = await uvm.approvals.approve([each["id"] for each in waiting(uvm)], "ada")
        assert answered.woken == (mission,)
        assert uvm.readings.mission(mission)["status"] == "queued"  # nobody works in a process that only answers
        assert len(bridge.history) == spent
    async with scripted_uvm(tmp_path, bridge, install="ask", memory=False) as uvm:
        assert await uvm.missions.recover() == [mission]
        await uvm.missions.begin(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        assert bridge.written == 3


async def test_what_lapsed_while_nobody_was_there_is_told_after_the_restart(tmp_path: Path) -> None:
    """The mission is among those that are to be begun, and fails with the reason."""
    clock = Days()
    async with scripted_uvm(tmp_path, Coding(), install="ask", memory=False, seams=Seams(clock=clock)) as uvm:
        mission = await waits(uvm, MESSAGE)
    clock.pass_(8)
    async with scripted_uvm(tmp_path, Coding(), install="ask", memory=False, seams=Seams(clock=clock)) as uvm:
        assert await uvm.missions.recover() == [mission]
        await uvm.missions.begin(mission)
        assert "nobody answered in time" in (await uvm.missions.wait_for_end(mission))["reason"]["message"]


async def test_no_message_answers_a_question(uvm: UVM) -> None:
    """Approvals are records: nothing that is sent reaches one, by its name, number or tree; only a door does."""
    await waits(uvm, MESSAGE)
    name = waiting(uvm)[0]["id"]
    with uvm.image.snapshot() as root:
        number = f"oid:{int.from_bytes(root['approvals'][name]._p_oid or b'', 'big'):#x}"
    for receiver in (name, number, "approvals", "awaited", "asked"):
        for selector in ("approve", "approve_", "become"):
            message = {"receiver": receiver, "selector": selector, "arguments": ["approved"]}
            with pytest.raises(NotFound, match="there is no object"):
                await uvm.missions.ask({"text": "-", "message": message})
    assert len(waiting(uvm)) == 1
    assert slot(uvm) is Intent
