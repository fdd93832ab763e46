"""Outcomes: a person's newest verdict counts, other acts are noted once, and an undo is one as long as it stands."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from batos.image import roots
from batos.protocol.motion_documents import OutcomeAct, OutcomeDocument
from batos.records import outcomes
from batos.records.outcomes import NotedAct
from batos.testing import scripted_uvm


def noted(act: OutcomeAct, by: str = "ann", why: str = "") -> NotedAct:
    """An act."""
    return NotedAct(act, "2026-11-30T06:00:00.000Z", by, why)


async def test_the_newest_verdict_of_a_person_counts(tmp_path: Path) -> None:
    """Another person's stands beside it; other acts are noted once; the oldest go."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = (await uvm.missions.ask({"text": "Who winds the lamp?", "effort": "reflex"}))["id"]
        for each in (noted("rated_good"), noted("asked_again"), noted("rated_bad", "bob"), noted("asked_again")):
            await uvm.image.shared.apply(partial(outcomes.note, mission=mission, noted=each))
        rated = noted("rated_bad", why="Wrong year.")
        await uvm.image.shared.apply(partial(outcomes.note, mission=mission, noted=rated))
        with uvm.image.snapshot() as root:
            found = outcomes.list_outcomes(root, mission)
            assert [(each["act"], each["by"]) for each in found] == [
                ("rated_bad", "bob"), ("asked_again", "ann"), ("rated_bad", "ann"),
            ]  # fmt: skip
            assert found[-1]["why"] == "Wrong year."
        for number in range(outcomes.MOST + 3):
            act = noted("went_on", str(number))
            await uvm.image.shared.apply(partial(outcomes.note, mission=mission, noted=act))
        with uvm.image.snapshot() as root:
            assert len(root[roots.OUTCOMES][mission]) == outcomes.MOST


@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(outcomes.ACTS)), max_size=8))
def test_the_mean_is_between_the_values(acts: list[OutcomeAct]) -> None:
    """Nothing is no outcome."""
    told: list[OutcomeDocument] = [noted(each).as_document() for each in acts]
    found = outcomes.mean(told)
    values = [each["value"] for each in told]
    assert (found is None) == (not acts)
    assert found is None or min(values) - 1e-9 <= found <= max(values) + 1e-9
