"""What a mission decided is noted, and read by every later attempt: no answer is paid for a second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.execution.method_mind import BRICK, MethodMind, methods, open_method_mind
from tests.methods.generation.learning import SAID, SPEAKS, Learning, learning
from tests.minds.scripted import QUESTION, SLOTS, Script, ask, submit

from batos.inference.canonical import canonical
from batos.minds.trace import Choice, MissionChoices, choices_in
from batos.testing import author
from batos.uvm import UVM

GUIDE = SLOTS[1]
ECHO = f"async def {GUIDE}(self, query):\n    return await self.infer_(query)\n"
OTHER = f"async def {GUIDE}(self, query):\n    return await self.infer_('Answer me this: ' + query)\n"
#: What counts as a step of a mission's life: it may die right after each.
STEPS = ("mission.routed", "mission.state", "inference.start", "inference.end", "method.installed")


class Dies(BaseException):
    """The process of a mission is gone."""


class Death:
    """Raises at the step of that number, or in that state, and from then on whatever the dying still does."""

    def __init__(self, at: int | str) -> None:
        self.at = at
        self.steps = 0
        self.dead = False

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        """Heard of every event."""
        self.steps += event in STEPS
        self.dead = self.dead or self.at in (self.steps, keys.get("state"))
        if self.dead and event in STEPS:
            raise Dies(event)


async def died(uvm: UVM, mission: str, at: int | str) -> bool:
    """Run a mission that dies at a step; False: it came to its end before. What was only noted is gone with it."""
    leave = uvm.events.subscribe(Death(at))
    try:
        await (await uvm.readiness.ready()).runner.run(mission)
    except Dies:
        return True
    finally:
        leave()
        await uvm.method_runtime.generator.generations.single_flight.aclose()
        uvm.journal._notes.clear()
    return False


def paid(mind: Learning | MethodMind) -> Counter[bytes]:
    """Every request that was answered."""
    return Counter(
        canonical([each.model, list(each.messages), each.schema, dict(each.options)]) for each in mind.bridge.history
    )


async def test_ten_missions_that_learn_are_killed_and_resumed(tmp_path: Path) -> None:
    """A method that the first attempt made is run by the second, whoever would draw its control."""
    drawn = 0
    for number in range(10):
        async with learning(tmp_path / str(number), author(SPEAKS, SAID, Script()), method_control=3) as mind:
            mission = await submit(mind.uvm, QUESTION, (), persona="BRICK", effort="cycle")
            drawn += any(mind.uvm.lifecycle.is_control(mission, slot) for slot in SLOTS)
            assert await died(mind.uvm, mission, "SYNTHESIZING")
            before = len(mind.bridge.history)
            assert await mind.uvm.missions.recover() == [mission]
            shown = await mind.uvm.missions.run(mission)
            assert [each["as"].partition(",")[0] for each in shown["provenance"]["methods"]] == ["method"] * 3
            assert max(paid(mind).values()) == 1
            assert len(mind.bridge.history) == before + 1
    assert drawn


@given(
    points=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    persona=st.sampled_from(("BRICK", "ROBIN")),
    effort=st.sampled_from(("reflex", "cycle", "cycle", "council")),
    combine=st.sampled_from(("auto", "select", "vote", "weave")),
    every=st.sampled_from((0, 1, 2)),
)
@settings(max_examples=12, deadline=None)
async def test_whenever_a_mission_dies_only_what_was_not_answered_is_paid_for(
    tmp_path_factory: pytest.TempPathFactory, points: tuple[int, int], every: int, **brief: str
) -> None:
    """For any two kill points of any mission no request is answered twice, and its choices are those that it noted."""
    home = tmp_path_factory.mktemp("law")
    async with learning(home, author(SPEAKS, SAID, Script()), method_control=every) as mind:
        policy = {"combine": brief.pop("combine")}
        mission = await submit(mind.uvm, QUESTION, (), **brief, policy=policy)
        noted: dict[str, Choice] = {}
        for point in points:
            if await died(mind.uvm, mission, point):
                noted |= choices_in(mind.uvm.journal.notes(mission))
                await mind.uvm.missions.recover()
        shown = await mind.uvm.missions.run(mission)
        assert shown["status"] == "done"
        assert max(paid(mind).values()) == 1
        await mind.uvm.journal.drain()
        assert noted.items() <= choices_in(mind.uvm.journal.notes(mission)).items()


async def test_a_later_attempt_runs_the_revision_that_the_earlier_one_ran(tmp_path: Path) -> None:
    """Another revision acts by now: who began with the former goes on with it, the next question takes the new one."""
    async with open_method_mind(tmp_path / "home", memory=False) as mind:
        await mind.install(**{GUIDE: ECHO})
        mission = await submit(mind.uvm)
        assert await died(mind.uvm, mission, "SYNTHESIZING")
        await mind.install(**{GUIDE: OTHER})
        await mind.uvm.missions.recover()
        shown = await mind.uvm.missions.run(mission)
        assert [each["revision"] for each in shown["provenance"]["methods"] if each["selector"] == GUIDE] == ["1"]
        assert max(paid(mind).values()) == 1
        later = await ask(mind.uvm)
        assert [each["revision"] for each in later["provenance"]["methods"] if each["selector"] == GUIDE] == ["2"]


async def test_an_intent_that_was_interpreted_is_interpreted_again(tmp_path: Path) -> None:
    """A method that came between two attempts is not theirs; a retry chooses as the mission that it retries did."""
    async with open_method_mind(tmp_path / "home") as mind:
        mission = await submit(mind.uvm)
        assert await died(mind.uvm, mission, "SYNTHESIZING")
        await mind.install(**{GUIDE: ECHO})
        await mind.uvm.missions.recover()
        shown = await mind.uvm.missions.run(mission)
        assert (GUIDE, "interpreted intent") in methods(shown)
        again = await ask(mind.uvm, ancestor=mission)
        assert (GUIDE, "interpreted intent") in methods(again)
        assert again["cost"]["calls"] == 0
        assert (GUIDE, "method") in methods(await ask(mind.uvm))


async def test_a_retry_runs_a_method_only_while_it_acts(tmp_path: Path) -> None:
    """Whoever takes a method out of use and asks again does not get it."""
    async with open_method_mind(tmp_path / "home") as mind:
        await mind.install(**{GUIDE: ECHO})
        first = await ask(mind.uvm)
        await mind.uvm.lifecycle.roll_back(f"{BRICK}.{GUIDE}", 0, "tester")
        again = await ask(mind.uvm, ancestor=first["id"])
        assert (GUIDE, "interpreted intent") in methods(again)


async def test_the_nearest_of_those_that_are_retried_is_followed(tmp_path: Path) -> None:
    """Of several notes the last stands, the mission's own before those of others."""
    async with open_method_mind(tmp_path / "home") as mind:
        journal = mind.uvm.journal
        for mission, revision in (("m-1", 1), ("m-2", 2)):
            decided = MissionChoices(journal, mission)
            decided.choose("oid:0x1 guide_facet_", Choice("control", 7))
            decided.choose("oid:0x1 guide_facet_", Choice("method", revision))
            await journal.flush(mission)
        third = MissionChoices(journal, "m-3", ("m-2", "m-1"))
        assert third.choice("oid:0x1 guide_facet_") is None
        assert third.earlier_choice("oid:0x1 guide_facet_") == Choice("method", 2)
        assert MissionChoices(journal, "m-2", ("m-1",)).choice("oid:0x1 guide_facet_") == Choice("method", 2)
