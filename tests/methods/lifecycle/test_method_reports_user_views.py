"""Methods as one user may see them: sources and checks, without the missions and people of others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.methods.lifecycle.brick import seeded

from batos.image.roots import method_key, named_objects
from batos.methods.lifecycle.method_reports import SOMEBODY
from batos.protocol.method_documents import ApprovedBy
from batos.records import memory_lineage
from batos.server.dispatch import reads
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

BRICK = "brick_prototype_obj"
NAME = f"{BRICK}.tamland_facet_"
OWN = "async def tamland_facet_(self, query):\n    return 'Here is ' + query\n"
ANN, BOB = "key ann", "key bob"


class TwoUsers:
    """A mind with a method that two users' missions wished for, that ann approved, and the ids of the missions."""

    def __init__(self, uvm: UVM, missions: dict[str, str]) -> None:
        self.uvm, self.missions = uvm, missions
        self.reads = uvm.readings.lifecycle

    async def withdraw(self) -> None:
        """Take the method out with ann's mission, in her name."""
        why = memory_lineage.Withdrawal("2026-01-01T00:00:00Z", ANN, f"undone with {self.missions[ANN]}")

        def fold(root: Any) -> None:
            list(memory_lineage.retire_all(root, [(method_key(named_objects(root)[BRICK], "tamland_facet_"), 1)], why))

        await self.uvm.image.writer.apply(fold)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[TwoUsers]:
    """One of each test."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        missions = {
            user: (await uvm.missions.ask({"text": "Why?", "effort": "reflex", "user": user}))["id"]
            for user in (ANN, BOB)
        }
        made = seeded(uvm, BRICK, "tamland_facet_", OWN).with_missions(set(missions.values()))
        answer = ApprovedBy(approval="a-1", approved_by=ANN, approved_at="2026-01-01T00:00:00Z")
        await uvm.lifecycle.install(replace(made, provenance={**made.provenance, **answer, "by": ANN}))
        yield TwoUsers(uvm, missions)


async def test_a_user_sees_a_method_without_others_behind_it(two: TwoUsers) -> None:
    """Bob has its source and the id of his own mission; nothing says who approved it or asked for it."""
    found = two.reads.describe(NAME, None, BOB)
    assert found["source"] == OWN
    assert found["provenance"]["missions"] == [two.missions[BOB]]
    for hidden in (two.missions[ANN], ANN, "a-1"):
        assert hidden not in json.dumps(found)


async def test_whoever_approved_a_method_sees_that(two: TwoUsers) -> None:
    """Ann has her own answer and her own mission."""
    provenance = two.reads.describe(NAME, None, ANN)["provenance"]
    assert (provenance["by"], provenance["approval"], provenance["approved_by"]) == (ANN, "a-1", ANN)
    assert provenance["missions"] == [two.missions[ANN]]


async def test_the_home_sees_all_behind_a_method(two: TwoUsers) -> None:
    """Without a user nothing is left out."""
    provenance = two.reads.describe(NAME)["provenance"]
    assert set(provenance["missions"]) == set(two.missions.values())
    assert provenance["approved_by"] == ANN
    assert two.reads.history(NAME)["changes"][0]["reason"] == "redefined, approved as a-1"


async def test_a_history_names_nobody_else_and_no_origin(two: TwoUsers) -> None:
    """Changes of others are by another user, and their reasons name no mission and no approval."""
    await two.withdraw()
    found = two.reads.history(NAME, BOB)
    assert [(each["by"], each["reason"]) for each in found["changes"]] == [
        (SOMEBODY, "redefined"), (SOMEBODY, "undone"),
    ]  # fmt: skip
    (revision,) = found["revisions"]
    assert revision["came"]["by"] == SOMEBODY
    for hidden in (two.missions[ANN], ANN, "a-1"):
        assert hidden not in json.dumps(found)
    assert ANN in {each["by"] for each in two.reads.history(NAME, ANN)["changes"]}


async def test_the_reason_of_a_retirement_names_no_origin(two: TwoUsers) -> None:
    """Neither in a list nor in the method's own document; the home sees the mission that was undone."""
    await two.withdraw()
    shown = two.reads.describe(NAME, 1, BOB)
    assert shown["retired"] is not None
    assert shown["retired"]["reason"] == "undone"
    assert [each["reason"] for each in two.reads.list_methods(BRICK, BOB)] == ["undone"]
    assert two.missions[ANN] not in json.dumps([shown, two.reads.list_methods(BRICK, BOB)])
    assert two.missions[ANN] in json.dumps(two.reads.describe(NAME, 1))


@pytest.mark.parametrize("verb", ["inspect", "why"])
async def test_the_slot_of_a_method_names_nobody_else(two: TwoUsers, verb: str) -> None:
    """What a user inspects, and the reasons that it asks for, leave out the same; the home sees all."""

    def read(user: str | None) -> str:
        readings = two.uvm.readings
        if verb == "why":
            return json.dumps(reads.explain(readings, NAME, user))
        return json.dumps([readings.inspect(each, user) for each in (NAME, BRICK)])

    told = read(BOB)
    assert not [hidden for hidden in (two.missions[ANN], ANN, "a-1") if hidden in told]
    assert all(seen in read(None) for seen in (two.missions[ANN], ANN, "a-1"))


async def test_a_generation_and_the_ledger_are_nobody(tmp_path: Path) -> None:
    """Changes that no person made name their maker to every user."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        await uvm.lifecycle.install(seeded(uvm, BRICK, "tamland_facet_", OWN))
        reads = uvm.readings.lifecycle
        assert reads.history(NAME, BOB) == reads.history(NAME)
