"""Nights of trials in worlds whose truth is known: what is better is found, and what is not is left alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from batos.autotelic import slot_values, trial_verdicts, trials
from batos.autotelic.heartbeat import Allowance, Expense, Heartbeat, HeartbeatParts
from batos.autotelic.slot_values import SlotWrite
from batos.genesis.state_steps import default_steps, steps_of, with_bound_value
from batos.image.ids import iso
from batos.protocol.errors import BriefError, Refused
from batos.records.redefinitions import ChangeOrigin
from motion_worlds_side import TrialWorld, trial_world

ANN = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "I want it")


async def nights(world: TrialWorld, count: int) -> None:
    """So many nights with the calls of a day each."""
    for _ in range(count):
        await world.night()


async def test_a_planted_gain_is_found_and_nothing_else_is_kept(tmp_path: Path) -> None:
    """A value that answers 25 of 100 questions more, among seven levers whose values do nothing."""
    async with trial_world(tmp_path, effects={("ROBIN.temperature", 0.3): 0.25}) as world:
        await nights(world, 5)
        kept = [each for each in world.documents() if each["state"] in trials.STANDING]
        assert [each["lever"] for each in kept] == ["mind.temperature"]
        assert world.acting()["ROBIN.temperature"] == 0.3
        assert all(each["calls"] > 0 for each in world.documents() if each["ended"])


async def test_the_steps_of_a_state_are_tried_as_any_slot(tmp_path: Path) -> None:
    """Fewer parts of memory are recalled from then on; the lineage has the steps before."""
    fewer = with_bound_value(default_steps("IDLE"), "recall", "most", 4)
    async with trial_world(tmp_path, effects={("IDLE.steps", fewer): 0.4}) as world:
        for _ in range(12):
            await world.night()
            if world.acting()["IDLE.steps"] == fewer:
                break
        told = next(each for each in world.documents() if each["state"] in trials.STANDING)
        assert told["lever"] == "IDLE.steps recall.most"
        with world.uvm.image.snapshot() as root:
            assert steps_of(root["orchestrator_obj"]).number("IDLE", "recall", "most") == 4
            values = [each["by"] for each in slot_values.describe(root, "idle.steps")["values"]]
        assert values == ["codex", "trial"]


async def test_where_nothing_helps_nothing_changes(tmp_path: Path) -> None:
    """Ten nights in a world of noise."""
    async with trial_world(tmp_path, noise=0.4, seed=3) as world:
        before = world.acting()
        await nights(world, 10)
        assert world.acting() == before
        assert len(world.documents()) > 5


async def test_a_change_that_harms_is_undone_after_it_was_kept(tmp_path: Path) -> None:
    """The world turns after the promotion; the probation finds it."""
    effects = {("ROBIN.temperature", 0.3): 0.3}
    async with trial_world(tmp_path, effects=dict(effects)) as world:
        for _ in range(8):
            await world.night(100)
            if any(each["state"] == "promoted" for each in world.documents()):
                break
        world.effects[("ROBIN.temperature", 0.3)] = -0.2
        await nights(world, 2)
        told = next(each for each in world.documents() if each["lever"] == "mind.temperature")
        assert told["state"] == "undone"
        assert told["probed"] <= trial_verdicts.PROBED
        assert world.acting()["ROBIN.temperature"] != 0.3


@pytest.mark.parametrize("calls", [1, 7, 60])
async def test_a_night_spends_no_more_than_it_may(tmp_path: Path, calls: int) -> None:
    """A question that is asked in both forms is asked whole: two calls more at most, and the values of a lever."""
    async with trial_world(tmp_path) as world:
        await world.night(calls)
        assert calls <= len(world.asked) <= calls + 4


async def test_a_night_that_is_broken_off_goes_on_and_counts_each_question_once(tmp_path: Path) -> None:
    """At whatever call it is told to leave: what was noted stays, and no question is noted twice."""
    async with trial_world(tmp_path, effects={("ROBIN.temperature", 0.3): 0.4}) as world:
        for stop in range(3, 300, 23):
            world.stops_after = stop
            await world.night()
        world.stops_after = None
        await nights(world, 2)
        told = next(each for each in world.documents() if each["lever"] == "mind.temperature")
        assert told["state"] in trials.STANDING
        with world.uvm.image.snapshot() as root:
            for each in world.documents():
                asked = trials.list_asked(root, each["id"], judged=True)
                assert len(asked) == each["asked"] + each["probed"]


async def test_without_questions_nothing_is_asked(tmp_path: Path) -> None:
    """Nor where every lever was tried and no question was made since; with new ones they are tried again."""
    async with trial_world(tmp_path, made={"2026-11-01": 10}) as world:
        assert await world.night() == ""
        assert await world.nights().duty().work(Allowance()) == "10 of the 60 questions that a trial needs"
        with pytest.raises(BriefError, match="must be a number"):  # told before what is missing
            await world.nights().begin("ROBIN.temperature", "hot", ANN)
        with pytest.raises(Refused, match="10 questions"):
            await world.nights().begin("ROBIN.temperature", 0.3, ANN)
        world.made["2026-11-02"] = 60
        while await world.night(1_000):
            await world.finish()
        asked, tried = len(world.asked), len(world.documents())
        assert await world.night() == ""
        assert len(world.asked) == asked
        world.made[iso(world.now)] = 60
        await world.night()
        assert len(world.documents()) > tried


async def test_a_person_tries_a_value_and_keeps_a_line(tmp_path: Path) -> None:
    """A persona's line waits for the person; who names a value that acts is told so."""
    line = "You are ROBIN. Answer in one short sentence."
    async with trial_world(tmp_path, effects={("ROBIN.line", line): 0.3}) as world:
        with pytest.raises(BriefError, match="is 'auto' now"):
            await world.nights().begin("ROBIN.form", "auto", ANN)
        with pytest.raises(Refused, match="may be redefined"):
            await world.nights().begin("ROBIN.core_identity", "You are nobody.", ANN)
        found = await world.nights().begin("ROBIN.line", line, ANN)
        await nights(world, 3)
        told = next(each for each in world.documents() if each["id"] == found)
        assert (told["state"], told["screened"]) == ("waiting", 0)
        assert world.acting()["ROBIN.line"] != line
        await world.uvm.image.shared.apply(lambda root: trial_verdicts.keep(root, found, ANN))
        assert world.acting()["ROBIN.line"] == line
        with world.uvm.image.snapshot() as root, pytest.raises(Refused, match="is promoted") as refused:
            trial_verdicts.keep(root, found, ANN)
        assert "batos approvals" in refused.value.remedy


async def test_a_value_of_a_person_has_the_risk_of_its_lever(tmp_path: Path) -> None:
    """The steps of a state act by themselves when they are better; no person has to agree once more."""
    async with trial_world(tmp_path) as world:
        steps = with_bound_value(default_steps("IDLE"), "recall", "most", 7)
        await world.nights().begin("IDLE.steps", steps, ANN)
        assert [each["risk"] for each in world.documents()] == [1]


async def test_what_lies_on_the_shelf_is_switched_on_when_it_is_better(tmp_path: Path) -> None:
    """A facet of the codex, beside those that act; undone, it lies there again."""
    async with trial_world(tmp_path) as world:
        before = world.acting()["BABS.facets"]
        assert isinstance(before, tuple)
        more = (*before, "second_reading_facet_")
        world.effects = {("BABS.facets", more): 0.4}
        with world.uvm.image.snapshot() as root:
            lever = next(each for each in slot_values.list_levers(root) if each.name == "BABS.facets new")
        assert (lever.others, lever.kind.risk) == (((SlotWrite("BABS.facets", more),),), 2)
        found = await world.nights().begin("BABS.facets", more, ANN)
        await nights(world, 2)
        assert world.acting()["BABS.facets"] == more
        await world.undo(found)
        assert world.acting()["BABS.facets"] == before


def test_the_page_of_motion_names_each_kind_of_lever() -> None:
    """A row for each, with its risk: none is tried that nobody was told of."""
    page = (Path(__file__).parents[2] / "docs" / "motion.md").read_text(encoding="utf-8")
    rows = page.partition("| lever | values | risk |")[2].partition("\n\n")[0].splitlines()[2:]
    assert sorted(int(each.rstrip("| ")[-1]) for each in rows) == sorted(each.risk for each in slot_values.KINDS)


async def test_a_lever_that_decay_names_comes_first(tmp_path: Path) -> None:
    """The duty has something to do when items or trials changed, and once a day; nothing else wakes it."""
    async with trial_world(tmp_path) as world:
        duty = world.nights().duty()
        with world.uvm.image.snapshot() as root:
            before = duty.mark(root)
            assert duty.mark(root) == before
        await duty.work(Allowance(lambda: True, Expense(1e9, 10, 10**9)))
        with world.uvm.image.snapshot() as root:
            changed = duty.mark(root)
            assert changed != before
            world.now += timedelta(days=1)
            assert duty.mark(root) != changed


async def test_a_trial_goes_on_each_day_until_its_questions_are_asked(tmp_path: Path) -> None:
    """The calls of a day end a beat; nothing else changes, and the next day has calls again."""
    async with trial_world(tmp_path) as world:
        image, duties = world.uvm.image, [world.nights().duty()]
        heart = Heartbeat(
            HeartbeatParts(
                image, lambda: world.now, world.uvm.workers.is_idle, duties, Expense(1e9, 30, 10**9), 86_400.0,
                lambda: True, idle=0.0,
            )
        )  # fmt: skip
        await heart.turn("ann", on=True)
        for _ in range(3):
            before = len(world.asked)
            await heart._beat_if_due()
            assert len(world.asked) >= before + 30
            again = len(world.asked)
            await heart._beat_if_due()
            assert len(world.asked) == again
            world.now += timedelta(days=1)


async def test_no_trial_begins_that_no_question_could_end(tmp_path: Path) -> None:
    """Neither by decay nor by a person: the questions that judged a slot before judge nothing of it."""
    async with trial_world(tmp_path, made={"2026-11-01": 60}, effects={("ROBIN.form", "lean"): -0.5}) as world:
        found = await world.nights().begin("ROBIN.form", "lean", ANN)
        await nights(world, 3)
        assert world.documents()[0]["state"] == "dropped"
        with world.uvm.image.snapshot() as root:
            left = 60 - len(trials.list_asked(root, found, judged=True))
        with pytest.raises(Refused, match=f"^{left} questions"):
            await world.nights().begin("ROBIN.form", "full", ANN)


async def test_a_persons_steps_are_judged_as_the_heartbeats_are(tmp_path: Path) -> None:
    """Their risk is that of the lever of the same slot; no person has to agree to a better one."""
    fewer = with_bound_value(default_steps("IDLE"), "recall", "most", 3)
    async with trial_world(tmp_path, effects={("IDLE.steps", fewer): 0.4}) as world:
        await world.nights().begin("IDLE.steps", fewer, ANN)
        assert world.documents()[0]["risk"] == 1


async def test_what_is_on_probation_is_not_tried_again_meanwhile(tmp_path: Path) -> None:
    """Another lever of the same slot would hide what the first change does."""
    fewer = with_bound_value(default_steps("IDLE"), "recall", "most", 4)
    async with trial_world(tmp_path, effects={("IDLE.steps", fewer): 0.4}, made={"2026-11-01": 120}) as world:
        await world.nights().begin("IDLE.steps", fewer, ANN)
        await nights(world, 4)
        first, *others = world.documents()
        assert first["state"] == "promoted"
        for _ in range(20):
            await world.finish()
            await world.night()
        slots = {change["slot"] for each in world.documents()[1:] for change in each["changes"]}
        assert others or slots
        assert "IDLE.steps" not in slots
