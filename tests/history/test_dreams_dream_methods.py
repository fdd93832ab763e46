"""Methods of dreams: made in the copy, paid for once, and in the mind only by a promotion that passes every check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.methods.generation.learning import CYCLE, FACETS, MESSAGE, Learning, learning
from tests.methods.generation.test_attempt_absent_objects import AGENT, Coder, brief

from batos.guardian.policy import SHIPPED
from batos.history import dreams
from batos.image import roots
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots, reference
from batos.protocol.errors import Refused
from batos.records import tools
from batos.testing import scripted_uvm

BRICK = "brick_prototype_obj"
GUIDE = "guide_facet_"
DREAM = {**MESSAGE, "user": "tester"}


def slots(found: Learning) -> set[type]:
    """What the facets are in the mind."""
    return {found.slot(each) for each in FACETS}


async def test_a_method_of_a_dream_comes_with_its_promotion(tmp_path: Path) -> None:
    """Until then the mind has its intents; afterwards the methods, with the dream's mission as the one they are for."""
    async with learning(tmp_path, install="now") as found:
        ask = Door(found.uvm)
        dream = await ask("dream_new", brief={**CYCLE, "user": "tester"})
        assert (sorted(found.coded), slots(found)) == (sorted(FACETS), {Intent})
        diff = await ask("dream_diff", dream=dream["id"])
        made = {each["method"]: each for each in diff["made"]}
        assert set(made) == {f"{BRICK}.{each}" for each in FACETS}
        assert {(each["asks"], each["conflict"]) for each in made.values()} == {(False, "")}
        assert "infer_" in made[f"{BRICK}.{GUIDE}"]["source"]
        assert found.names("method.installed") == []
        await ask("dream_promote", dream=dream["id"])
        assert slots(found) == {Method}
        assert sorted(each["selector"] for each in found.names("method.installed")) == sorted(FACETS)
        with found.uvm.image.snapshot() as root:
            method = own_slots(root["brick_prototype_obj"])[GUIDE]
            assert method.provenance["missions"] == [dream["id"]]
        counted = found.uvm.readings.lifecycle.describe(f"{BRICK}.{GUIDE}")["ledger"]
        assert counted["calls"] == 1
        again = await found.uvm.missions.ask({**CYCLE, "text": "Why again?", "user": "tester"})
        assert {each["as"] for each in again["provenance"]["methods"]} == {"method"}
        await ask("undo", mission=dream["id"], cascade=True)
        assert (slots(found), len(found.coded)) == ({Intent}, 3)


async def test_what_a_dropped_dream_paid_for_serves_the_mind(tmp_path: Path) -> None:
    """The same method is made there without a call of the coder; a second dream pays for none either."""
    async with learning(tmp_path, install="now") as found:
        ask = Door(found.uvm)
        for _ in range(2):
            dream = await ask("dream_new", brief=DREAM)
            await ask("dream_drop", dream=dream["id"])
        assert (found.coded, found.slot(GUIDE)) == ([GUIDE], Intent)
        told = await found.uvm.missions.ask(DREAM)
        assert [each["outcome"] for each in told["provenance"]["generated"]] == ["installed"]
        assert (found.coded, found.slot(GUIDE)) == ([GUIDE], Method)
        assert (await ask("dream_diff", dream=dream["id"]))["made"] == []


async def test_a_method_that_needs_a_yes_needs_it_after_a_promotion_too(tmp_path: Path) -> None:
    """A dream asks nobody; its promotion does, and the method comes in with the answer."""
    async with learning(tmp_path, install="ask") as found:
        ask = Door(found.uvm)
        dream = await ask("dream_new", brief=DREAM)
        assert (await ask("approvals"))["waiting"] == 0
        (made,) = (await ask("dream_diff", dream=dream["id"]))["made"]
        assert (made["method"], made["asks"]) == (f"{BRICK}.{GUIDE}", True)
        await ask("dream_promote", dream=dream["id"])
        (line,) = (await ask("approvals"))["approvals"]
        assert (line["status"], found.slot(GUIDE)) == ("asked", Intent)
        await ask("approve", approvals=[line["id"]])
        assert found.slot(GUIDE) is Method
        assert found.coded == [GUIDE]


async def test_a_dream_whose_slot_has_a_method_by_now_is_refused(tmp_path: Path) -> None:
    """Nothing of it is written."""
    async with learning(tmp_path, install="now") as found:
        ask = Door(found.uvm)
        dream = await ask("dream_new", brief=DREAM)
        await found.uvm.missions.ask({**DREAM, "text": "other"})
        diff = await ask("dream_diff", dream=dream["id"])
        assert diff["conflicts"] == [f"{BRICK}.{GUIDE}"]
        with pytest.raises(Refused, match="changed since the dream began"):
            await ask("dream_promote", dream=dream["id"])
        assert [each["id"] for each in (await ask("missions"))["missions"]] != [dream["id"]]


async def _alter(found: Learning, dream: str, **changed: Any) -> None:
    """Change the candidate that the journal keeps of a dream."""

    def change(root: Any) -> None:
        kept = root[dreams.DREAMS][dream]
        (made,) = kept["made"]
        kept["made"] = [{**made, "candidate": {**made["candidate"], **changed}}]

    await found.uvm.image.journal_writer.apply(change)


ALTERED: dict[str, tuple[dict[str, Any], str]] = {
    "a verdict of another policy": ({"source": "import os\n", "verdict": {"accepted": True}}, "refuses"),
    "a source without a verdict": ({"source": "import os\n"}, "another source"),
    "a verdict that refuses": ({"verdict": {"accepted": False, "policy": SHIPPED.version}}, "refuses"),
    "from outside": ({"provenance": {"trust": "external"}}, "provenance lacks"),
}


@pytest.mark.parametrize("name", ALTERED)
async def test_a_method_of_a_dream_passes_every_check(tmp_path: Path, name: str) -> None:
    """The guardian's verdict on exactly its source, of today's policy, and a whole provenance."""
    changed, what = ALTERED[name]
    async with learning(tmp_path, install="now") as found:
        ask = Door(found.uvm)
        dream = await ask("dream_new", brief=DREAM)
        await _alter(found, dream["id"], **changed)
        with pytest.raises(Refused, match=what):
            await ask("dream_promote", dream=dream["id"])
        assert (found.slot(GUIDE), (await ask("missions"))["missions"]) == (Intent, [])


async def test_a_person_s_no_stands_against_a_dream(tmp_path: Path) -> None:
    """Of exactly this source, for as long as it stands."""
    async with learning(tmp_path, install="now", memory=False) as found:
        dream = await Door(found.uvm)("dream_new", brief=DREAM)
    async with learning(tmp_path, install="ask", memory=False) as found:
        ask = Door(found.uvm)
        await found.uvm.missions.ask(DREAM)
        (line,) = (await ask("approvals"))["approvals"]
        await ask("reject", approval=line["id"], why="no", user="tester")
        with pytest.raises(Refused, match="rejected exactly this"):
            await ask("dream_promote", dream=dream["id"])


async def test_a_whole_object_comes_with_its_dream(tmp_path: Path) -> None:
    """With all its methods; the mission's records name the object that the mind has then."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now") as uvm:
        ask = Door(uvm)
        dream = await ask("dream_new", brief=brief())
        assert json.loads(dream["answer"]) == 3
        assert uvm.readings.inspect(AGENT)["state"] == "declared, absent"
        assert [each["method"] for each in (await ask("dream_diff", dream=dream["id"]))["made"]] == [AGENT]
        promoted = await ask("dream_promote", dream=dream["id"])
        with uvm.image.snapshot() as root:
            made = tools.find_tool(root, AGENT)
            assert made is not None
            assert isinstance(own_slots(made)["words_"], Method)
            (ran,) = promoted["provenance"]["methods"]
            assert ran["oid"] == reference(made)
            lineage = root[roots.METHODS][f"{reference(made)} words_"]
            assert lineage.totals[1]["method"]["calls"] == 1
        assert len(coder.asked) == 1


async def test_a_replay_makes_the_methods_of_then_from_the_journal(tmp_path: Path) -> None:
    """Nothing is paid and nothing differs; the mind is as it was."""
    async with learning(tmp_path, install="now") as found:
        ask = Door(found.uvm)
        first = await found.uvm.missions.ask({**CYCLE, "user": "tester"})
        called = len(found.bridge.history)
        again = await ask("replay", mission=first["id"])
        told = again["replay"]
        assert (len(found.bridge.history), told["made"], told["gone"], told["methods"]) == (called, [], [], [])
        assert again["answer"] == first["answer"]
