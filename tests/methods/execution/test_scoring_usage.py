"""What ran is told exactly: to provenance, and to the ledger of the slot, with what came of it and what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.methods.execution.method_mind import BRICK, Always, MethodMind, methods, open_method_mind, replace_runtime
from tests.minds.scripted import BAD, SLOTS, ask

from batos.image.roots import named_objects
from batos.protocol.errors import CellMissing, GenerationFailed, Refused, StreamCut
from batos.records import outcomes
from batos.records.methods import lineage_of

TAMLAND, GUIDE, ROGUES = SLOTS
ECHO = "async def tamland_facet_(self, query):\n    return await self.infer_(query)\n"
BROKEN = "def tamland_facet_(self, query):\n    return 1 // 0\n"


def ledger(mind: MethodMind, selector: str = TAMLAND) -> list[dict[str, Any]]:
    """Every use of BRICK's slot, oldest first."""
    with mind.uvm.image.snapshot() as root:
        lineage = lineage_of(root, named_objects(root)[BRICK], selector)
        return [] if lineage is None else [dict(each) for each in outcomes.entries(lineage.ledger)]


async def test_a_use_is_told_with_its_calls_and_tokens(mind: MethodMind) -> None:
    """Those of the method alone, prompts counted; the same again when all of it comes from the journal."""
    await mind.install(tamland_facet_=ECHO)
    shown = await ask(mind.uvm)
    (use,) = ledger(mind)
    (call,) = [each for each in mind.uvm.readings.prompts(shown["id"]) if each["path"] == "brick/delegating/tamland#0"]
    assert use["tokens"] == sum(call["tokens"].values())
    known = {"revision": 1, "outcome": "ok", "control": False, "calls": 1, "gate_faults": 0, "mission": shown["id"]}
    assert {key: use[key] for key in known} == known
    assert use["seconds"] >= 0
    again = await ask(mind.uvm, ancestor=shown["id"])
    assert again["cost"]["calls"] == 0
    assert (ledger(mind)[1]["calls"], ledger(mind)[1]["tokens"]) == (use["calls"], use["tokens"])


async def test_a_method_that_fails_is_told_as_a_fault(mind: MethodMind) -> None:
    """Its part failed and the mission did not; what the gate found in the answer is told of all that was used."""
    await mind.install(tamland_facet_=BROKEN)
    mind.script.woven = mind.script.revised = BAD
    shown = await ask(mind.uvm)
    assert not shown["provenance"]["gate"]["ok"]
    (use,) = ledger(mind)
    assert (use["outcome"], use["calls"], use["tokens"]) == ("fault", 0, 0)
    assert use["gate_faults"] == len(shown["provenance"]["gate"]["faults"]) > 0


async def test_uses_of_a_mission_that_failed_reach_the_ledger(mind: MethodMind) -> None:
    """Its thought is gone, and what it used is known all the same: else a method that fails missions never went."""
    await mind.install(tamland_facet_=BROKEN)
    mind.script.woven = StreamCut("cut")
    with pytest.raises(StreamCut):
        await ask(mind.uvm)
    assert [each["outcome"] for each in ledger(mind)] == ["fault"]


async def test_an_answer_that_nobody_can_take_is_a_fault_and_leaves_nothing(mind: MethodMind) -> None:
    """Its part failed: what it had written is not there, and the ledger says so, or it would never go."""
    await mind.write(total=1)
    writes = "    self.total = 2\n    self._p_changed = True\n    return None\n"
    await mind.install(tamland_facet_=f"def tamland_facet_(self, query):\n{writes}")
    shown = await ask(mind.uvm)
    (failed,) = [each["failure"]["code"] for each in shown["voices"] if "failure" in each]
    assert (failed, mind.slots()["total"]) == ("method_failed", 1)
    assert [each["outcome"] for each in ledger(mind)] == ["fault"]


async def test_who_spent_a_missions_calls_is_counted(mind: MethodMind) -> None:
    """A method that asks without end fails each mission that it is in, and goes for it; those beside it do not."""
    flood = "    for number in range(100):\n        await self.infer_(f'{query} {number}')\n    return query\n"
    await mind.install(
        tamland_facet_=f"async def tamland_facet_(self, query):\n{flood}", guide_facet_=ECHO.replace(TAMLAND, GUIDE)
    )
    with pytest.raises(Refused, match="has spent its 40 calls"):
        await ask(mind.uvm)
    assert [(each["outcome"], each["calls"] > 30) for each in ledger(mind)] == [("fault", True)]
    assert [each["outcome"] for each in ledger(mind, GUIDE)] == ["ok"]


async def test_what_ollama_did_is_no_fault_of_the_methods(mind: MethodMind) -> None:
    """A cut answer ends the part, and is counted for nobody."""
    await mind.install(tamland_facet_=ECHO)
    mind.script.part = StreamCut("cut")
    with pytest.raises(StreamCut):
        await ask(mind.uvm)
    assert ledger(mind) == []


async def test_the_control_is_interpreted_and_told_as_such(tmp_path: Path) -> None:
    """Every mission is one where one in one is: the intent is interpreted under its method's revision."""
    async with open_method_mind(tmp_path / "home", method_control=1) as mind:
        await mind.install(tamland_facet_=BROKEN)
        shown = await ask(mind.uvm)
        assert methods(shown)[0] == (TAMLAND, "interpreted intent, as the control of its method")
        assert "failure" not in shown["voices"][0]
        (use,) = ledger(mind)
        assert (use["revision"], use["control"], use["outcome"], use["calls"]) == (1, True, "ok", 1)


async def test_what_no_text_could_answer_is_never_the_control(tmp_path: Path) -> None:
    """A message that is not about one text runs its method, whichever mission it is; without a cell it fails."""
    given: list[tuple[Any, ...]] = [(), (3,), (" ",), ("a", "b"), (["a"],)]
    async with open_method_mind(tmp_path / "home", method_control=1) as mind:
        await mind.install(tamland_facet_="def tamland_facet_(self, *given):\n    return [*given]\n")
        assert [await mind.sent(TAMLAND, *each) for each in given] == [[*each] for each in given]
        await replace_runtime(mind.uvm, cell=None)
        for each in given:
            with pytest.raises(CellMissing):
                await mind.send(TAMLAND, *each)


async def test_where_nothing_may_be_interpreted_there_is_no_control(tmp_path: Path) -> None:
    """The method runs in every mission; an intent without one fails its part, and says what policy forbids."""
    async with open_method_mind(tmp_path / "home", method_control=1, interpret="never") as mind:
        sources = {slot: ECHO.replace(TAMLAND, slot) for slot in (TAMLAND, GUIDE)}
        await mind.install(**sources)
        shown = await ask(mind.uvm)
        assert methods(shown) == [(TAMLAND, "method"), (GUIDE, "method")]
        failure = shown["voices"][2]["failure"]
        assert failure["code"] == "generation_failed"
        assert failure["remedy"]


async def test_what_a_mission_made_itself_runs_in_it_at_once(mind: MethodMind) -> None:
    """Its snapshot has the intent still: the method is asked for once, whoever sends the message how often."""
    generator = Always(
        tamland_facet_="async def tamland_facet_(self, query):\n    return await self.guide_facet_(query)\n",
        guide_facet_="def guide_facet_(self, query):\n    return 'Forty-two.'\n",
    )
    await replace_runtime(mind.uvm, generator=generator)
    shown = await ask(mind.uvm)
    assert [voice["answer"] for voice in shown["voices"]][:2] == ["Forty-two.", "Forty-two."]
    ran = [each for each in shown["provenance"]["methods"] if each["selector"] == GUIDE]
    assert {each["as"] for each in ran} == {"method, made in this mission"}
    assert sorted(each["path"] for each in ran) == ["brick/delegating/guide", "brick/delegating/tamland/guide_facet"]
    assert generator.asked.count(TAMLAND) == 1
    assert generator.asked.count(ROGUES) == 1


async def test_a_declared_tool_is_not_interpreted_for_want_of_a_cell(mind: MethodMind) -> None:
    """What computes has no voice to say it with."""
    await mind.learn(add_="def add_(self, one, other):\n    return one + other\n")
    assert await mind.sent("add_", 1, 2) == 3
    await replace_runtime(mind.uvm, cell=None)
    with pytest.raises(CellMissing):
        await mind.send("add_", 1, 2)


async def test_a_source_that_todays_guardian_refuses_does_not_run(mind: MethodMind) -> None:
    """Whatever was found of it when it was made: the part fails, with every fault."""
    await mind.install(tamland_facet_="import os\n\n\ndef tamland_facet_(self, query):\n    return os.getcwd()\n")
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["failure"]["code"] == "covenant_violation"
    assert ledger(mind)[0]["outcome"] == "fault"


async def test_a_generation_that_failed_fails_its_part_where_nothing_is_interpreted(mind: MethodMind) -> None:
    """What the generator raises is the part's reason."""

    class Failing(Always):
        async def method_for(self, *asked: Any, **more: Any) -> Any:
            raise GenerationFailed("nothing came of it")

    await replace_runtime(mind.uvm, generator=Failing())
    with pytest.raises(GenerationFailed, match="nothing came of it"):
        await ask(mind.uvm)
