"""A wish is a mission of the mind's own: its states, cost and record, its undo, and what a kill leaves of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.history.test_as_of_past_questions import Door
from tests.image.open_image import child, heard
from tests.methods.generation.learning import CYCLE, MESSAGE, SAID, SPEAKS, Learning, Refusing, learning
from tests.waiting import HANG

from batos.image import roots
from batos.inference.canonical import canonical
from batos.inference.ollama.bridge import ChatRequest
from batos.objects.method import Intent, Method
from batos.protocol.errors import Refused
from batos.testing import ScriptedBridge, author, method_reply, wanted_selector

GUIDE = "guide_facet_"
WHOLE = ["IDLE", "DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]


def own_missions(mind: Learning) -> list[dict[str, Any]]:
    """The missions that the mind asked itself, the oldest first."""
    with mind.uvm.image.snapshot() as root:
        records = list(roots.records_of(root))
        names = [name for name, each in records if each.brief.value["origin"]["door"] == "kernel"]
    return [dict(mind.uvm.readings.mission(name)) for name in names]


def states_of(mission: dict[str, Any]) -> list[str]:
    """The states of a mission, in order."""
    return [each["state"] for each in mission["states"]]


async def test_a_wish_is_a_mission_with_a_cycle_of_its_own(tmp_path: Path) -> None:
    """Specification, drafts and audit are its states, the calls its own cost; the mission that wished is its sender."""
    async with learning(tmp_path, install="auto") as mind:
        asked = await mind.uvm.missions.ask({**MESSAGE, "user": "ada"})
        assert own_missions(mind) == []
        await mind.uvm.learning.some()
        (grown,) = own_missions(mind)
        assert (grown["status"], states_of(grown)) == ("done", WHOLE)
        noted = [note["state"] for note in mind.uvm.journal.notes(grown["id"]) if "state" in note]
        assert noted == WHOLE[:-1]
        assert grown["cost"]["calls"] == 1
        assert grown["cost"]["answer_tokens"] > 0
        brief = grown["brief"]
        assert (brief["user"], brief["origin"]) == ("ada", {"door": "kernel", "client": f"wish {asked['id']}"})
        assert brief["message"]["selector"] == GUIDE
        assert grown["answer"].startswith(f"brick_prototype_obj.{GUIDE} is made: revision 1")
        ask = Door(mind.uvm)
        listed = [each["id"] for each in (await ask("missions", mind=True))["missions"]]
        assert listed == [grown["id"], asked["id"]]
        assert [each["id"] for each in (await ask("missions"))["missions"]] == [asked["id"]]
        assert (await ask("missions", mind=True, user="bob"))["missions"] == []


async def test_a_wish_that_cannot_be_fulfilled_is_failed(tmp_path: Path) -> None:
    """With its reason and all of its calls; the mission that wished names it, and another wish is another mission."""
    async with learning(tmp_path, Refusing(), install="auto") as mind:
        asked = await mind.uvm.missions.ask(MESSAGE)
        await mind.uvm.learning.some()
        (failed,) = own_missions(mind)
        assert (failed["status"], failed["cost"]["calls"]) == ("failed", 4)
        assert states_of(failed) == ["IDLE", "DECOMPOSING", "DELEGATING", "FAILED"]
        assert failed["reason"]["code"] == "covenant_violation"
        (told,) = mind.uvm.readings.mission(asked["id"])["provenance"]["generated"]
        assert (told["outcome"], told["mission"], told["calls"]) == ("failed", failed["id"], 0)
        assert (await mind.uvm.learning.some())["made"] == []
        assert len(own_missions(mind)) == 1


async def test_a_mission_that_waits_makes_its_method_itself(tmp_path: Path) -> None:
    """`now` is one flight within the mission, which has no other beside it, whoever needs the same."""
    async with learning(tmp_path, install="now") as mind:
        await asyncio.gather(*(mind.uvm.missions.ask({**MESSAGE, "idempotency_key": str(each)}) for each in range(3)))
        assert (len(mind.coded), own_missions(mind)) == (1, [])


async def test_an_undo_takes_the_method_back(tmp_path: Path) -> None:
    """Of the mission that made it, which a redo brings back; and of the mission that wished."""
    async with learning(tmp_path, install="auto") as mind:
        asked = await mind.uvm.missions.ask(MESSAGE)
        await mind.uvm.learning.some()
        (grown,), ask = own_missions(mind), Door(mind.uvm)
        told = await ask("undo", mission=grown["id"])
        assert told["undone"][0]["methods"] == [f"brick_prototype_obj.{GUIDE} revision 1"]
        assert mind.slot(GUIDE) is Intent
        await ask("redo", mission=grown["id"])
        assert mind.slot(GUIDE) is Method
        await ask("undo", mission=asked["id"])
        assert mind.slot(GUIDE) is Intent


async def test_who_ran_the_method_builds_on_the_mission_that_made_it(tmp_path: Path) -> None:
    """The undo of a wish names them, and takes them along only if it is told to."""
    async with learning(tmp_path, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        await mind.uvm.learning.some()
        later = await mind.uvm.missions.ask(MESSAGE)
        (grown,), ask = own_missions(mind), Door(mind.uvm)
        with pytest.raises(Refused) as refused:
            await ask("undo", mission=grown["id"])
        assert later["id"] in str(refused.value.as_dict())
        told = await ask("undo", mission=grown["id"], cascade=True)
        assert {each["mission"] for each in told["undone"]} == {later["id"], grown["id"]}


async def test_an_undone_mission_wishes_for_nothing(tmp_path: Path) -> None:
    """What makes its method is left and ended; when it comes back, another mission makes it."""
    held = InterruptedCoder({0})
    async with learning(tmp_path, held, install="auto") as mind:
        asked = await mind.uvm.missions.ask(MESSAGE)
        ask = Door(mind.uvm)
        making = asyncio.ensure_future(mind.uvm.learning.some())
        await asyncio.wait_for(held.came.wait(), HANG)
        await ask("undo", mission=asked["id"])
        assert await asyncio.wait_for(making, HANG) == {"made": [], "left": 0}
        assert (await mind.uvm.learning.some())["made"] == []
        assert [each["status"] for each in own_missions(mind)] == ["cancelled"]
        await ask("redo", mission=asked["id"])
        assert [each["outcome"] for each in (await mind.uvm.learning.some())["made"]] == ["installed"]
        assert [each["status"] for each in own_missions(mind)] == ["cancelled", "done"]


async def test_a_person_may_cancel_a_wish(tmp_path: Path) -> None:
    """It is not tried again."""
    held = InterruptedCoder({0})
    async with learning(tmp_path, held, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        making = asyncio.ensure_future(mind.uvm.learning.some())
        await asyncio.wait_for(held.came.wait(), HANG)
        await mind.uvm.missions.cancel(own_missions(mind)[0]["id"])
        assert (await asyncio.wait_for(making, HANG))["left"] == 0
        assert [each["status"] for each in own_missions(mind)] == ["cancelled"]


async def test_why_tells_what_it_came_of_and_what_its_audit_found(tmp_path: Path) -> None:
    """The mission that wished, the verdict, and the method with the calls that wrote it; of a failed one the reason."""
    async with learning(tmp_path, install="auto") as mind:
        asked = await mind.uvm.missions.ask({**MESSAGE, "user": "tester"})
        await mind.uvm.learning.some()
        ask, (grown,) = Door(mind.uvm), own_missions(mind)
        kinds = {each["kind"]: each for each in (await ask("why", what=grown["id"]))["because"]}
        assert kinds["wish"]["ref"] == asked["id"]
        assert kinds["wish"]["because"][0]["ref"] == asked["id"]
        assert "2 checks passed" in kinds["audit"]["text"]
        assert kinds["method"]["ref"] == f"brick_prototype_obj.{GUIDE}"
        assert "call" in {each["kind"] for each in kinds["method"]["because"]}
    async with learning(tmp_path / "other", Refusing(), install="auto") as mind:
        await mind.uvm.missions.ask({**MESSAGE, "user": "tester"})
        await mind.uvm.learning.some()
        told = (await Door(mind.uvm)("why", what=own_missions(mind)[0]["id"]))["because"]
        assert [each["kind"] for each in told if each["kind"] in ("wish", "reason", "call")] == [
            "wish", "reason", *["call"] * 4,
        ]  # fmt: skip


async def test_the_metric_counts_a_wish_that_nothing_has_used(tmp_path: Path) -> None:
    """It is a mission without a use, so growth alone lowers the line of structure; it is none of a day's five."""
    async with learning(tmp_path, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        await mind.uvm.learning.some()
        await mind.uvm.mission_memory.write()
        (grown,) = own_missions(mind)
        with mind.uvm.image.snapshot() as root:
            assert root[roots.ENTROPY][grown["id"]] == (None, None, None, 0.0)
        (day,) = (await Door(mind.uvm)("cem"))["days"]
        assert (day["missions"], day["carried"]) == (1, True)


async def test_an_erasure_takes_the_wish_along(tmp_path: Path) -> None:
    """With the calls of its coder; one that only waits keeps no erasure from its end."""
    held = InterruptedCoder({0})
    async with learning(tmp_path, held, install="auto") as mind:
        asked = await mind.uvm.missions.ask({**CYCLE, "user": "tester"})
        making = asyncio.ensure_future(mind.uvm.learning.some())
        await asyncio.wait_for(held.came.wait(), HANG)
        ask = Door(mind.uvm)
        other = await mind.uvm.missions.ask({"text": "Why?", "effort": "reflex", "user": "tester"})
        await asyncio.wait_for(making, HANG)
        assert [each["status"] for each in own_missions(mind)] == ["queued"]
        await ask("erase", target=other["id"], user="tester")
        await mind.uvm.learning.some()
        (first, *_) = own_missions(mind)
        told = await ask("erase", target=asked["id"], user="tester", cascade=True)
        assert {each["id"] for each in own_missions(mind)} <= told["missions"].keys()
        assert mind.uvm.journal.count_erased([first["provenance"]["generated"][0]["generation"]]) > 0


class InterruptedCoder(ScriptedBridge):
    """A coder with wrong drafts before the right one; at some of its calls it waits until somebody asks something."""

    def __init__(self, waits: set[int], wrong: int = 0) -> None:
        self.waits, self.wrong, self.calls = set(waits), wrong, 0
        self.came = asyncio.Event()
        self.answered: list[bytes] = []
        good = author(SPEAKS, SAID)
        super().__init__(lambda request: self._draft(request) or good(request))

    def _draft(self, request: ChatRequest) -> str:
        """The draft of a number, if that is a wrong one; no two are the same."""
        number = (len(request.messages) - 2) // 2
        is_wrong = wanted_selector(request) and number < self.wrong
        return method_reply(f"def wrong_(self):\n    return {number}\n", SAID) if is_wrong else ""

    async def think(self, request: ChatRequest, *args: Any, **more: Any) -> Any:
        """As any; an interrupted call has no answer."""
        if not wanted_selector(request):
            return await super().think(request, *args, **more)
        self.calls += 1
        if self.calls - 1 in self.waits:
            self.came.set()
            await asyncio.sleep(HANG)
        answer = await super().think(request, *args, **more)
        self.answered.append(canonical([list(request.messages)]))
        return answer


@settings(max_examples=6, deadline=None)
@given(st.sets(st.integers(0, 5), max_size=3), st.integers(0, 3))
def test_nothing_that_was_answered_is_asked_again(waits: set[int], wrong: int) -> None:
    """However often a question goes first, the wish is one mission, each answer is paid once, and all are its cost."""

    async def run(home: Path) -> None:
        coder = InterruptedCoder(waits, wrong)
        async with learning(home, coder, install="auto", memory=False) as mind:
            await mind.uvm.missions.ask(MESSAGE)
            while True:
                coder.came.clear()
                making = asyncio.ensure_future(mind.uvm.learning.some())
                came = asyncio.ensure_future(coder.came.wait())
                await asyncio.wait({making, came}, return_when=asyncio.FIRST_COMPLETED)
                came.cancel()
                if coder.came.is_set():
                    await mind.uvm.missions.ask({"text": "Why?", "effort": "reflex"})
                if (await asyncio.wait_for(making, HANG))["left"] == 0:
                    break
            (grown,) = own_missions(mind)
            assert (grown["status"], mind.slot(GUIDE)) == ("done", Method)
            assert Counter(coder.answered) == Counter(set(coder.answered))
            assert grown["cost"]["calls"] == coder.calls  # an interrupted one is a call too
            assert len(coder.answered) == wrong + 1

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(run(Path(home)))


STEPS = (
    "IDLE", "DECOMPOSING", "DELEGATING", "asked 0", "asked 1", "SYNTHESIZING", "installed", "COMPLETE",
)  # fmt: skip


async def kill_at(home: Path, until: str) -> None:
    """Run a process that makes a method, and kill it at a step."""
    with child(Path(__file__).with_name("script_grow.py"), home) as process:
        assert process.stdin is not None
        line = "begun"
        while line not in ("", until):
            line = await heard(process)
            if line != until:
                process.stdin.write("go\n")
                process.stdin.flush()
        assert line == until


@pytest.mark.parametrize("until", STEPS)
async def test_a_killed_wish_goes_on_where_it_was(tmp_path: Path, until: str) -> None:
    """At each of its steps: the same mission ends it, pays for no answer twice, and knows what it has cost."""
    await kill_at(tmp_path, until)
    before = STEPS.index(until)
    answered = sum(before > STEPS.index(each) for each in ("asked 0", "asked 1"))
    async with learning(tmp_path, install="auto", memory=False) as mind:
        (left,) = own_missions(mind)
        assert left["status"] in ("queued", "running")
        assert await mind.uvm.missions.recover() == []  # who makes methods begins it, when nobody asks
        told = await mind.uvm.learning.some()
        assert ([each["outcome"] for each in told["made"]], told["left"]) == (["installed"], 0)
        (grown,) = own_missions(mind)
        assert (grown["id"], grown["status"], mind.slot(GUIDE)) == (left["id"], "done", Method)
        assert len(mind.coded) == (answered < 2)
        assert states_of(grown) == WHOLE
        paid = 2 if answered else 1
        assert grown["cost"]["calls"] == paid
        assert told["made"][0]["calls"] == paid
        sender = grown["brief"]["origin"]["client"].removeprefix("wish ")
        (shown,) = mind.uvm.readings.mission(sender)["provenance"]["generated"]
        assert (shown["outcome"], shown["mission"], shown["calls"]) == ("installed", grown["id"], 0)


@pytest.mark.parametrize("recovers", [True, False])
async def test_a_wish_that_was_committed_is_only_published(tmp_path: Path, recovers: bool) -> None:
    """Killed right behind its commit: whoever is next asks nothing, and no second mission is accepted."""
    await kill_at(tmp_path, "committed")
    async with learning(tmp_path, install="auto", memory=False) as mind:
        if recovers:
            assert await mind.uvm.missions.recover() == []
        told = await mind.uvm.learning.some()
        assert (told["left"], mind.coded, mind.slot(GUIDE)) == (0, [], Method)
        (grown,) = own_missions(mind)
        assert (grown["status"], grown["cost"]["calls"]) == ("done", 2)
