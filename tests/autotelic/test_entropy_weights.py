"""The weights of the metric: floors and sum hold, verdicts move them, and too few of these do not."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.history.test_as_of_past_questions import Door

from batos.autotelic import entropy, entropy_days, slot_values
from batos.autotelic.entropy import FLOORS, LEAST, STEP, WEIGHTS, AnswerVerdict
from batos.history.why_nodes import Asking
from batos.history.why_sentences import explain_redefined
from batos.image import roots
from batos.image.ids import iso, mission_id
from batos.image.roots import Root
from batos.protocol.errors import BriefError, Refused
from batos.protocol.motion_documents import EntropyPart, EntropyParts
from batos.records.redefinitions import ChangeOrigin
from motion_worlds_side import TrialWorld, trial_world

PARTS = tuple(WEIGHTS)
ANN = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "I want it")


def _as_weights(shares: list[float]) -> dict[EntropyPart, float]:
    """Weights above their floors, from four numbers."""
    free, whole = 1 - sum(FLOORS.values()), sum(shares)
    return {part: FLOORS[part] + free * share / whole for part, share in zip(PARTS, shares, strict=True)}


some_weights = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(_as_weights)
some_ranks = st.fixed_dictionaries({part: st.floats(-1, 1) for part in PARTS})
verdicts = st.floats(-1, 1)
some_parts = st.dictionaries(st.sampled_from(PARTS), st.floats(0, 1)).map(lambda parts: cast("EntropyParts", parts))


@given(some_weights, some_ranks)
def test_a_step_stays_on_the_simplex_above_the_floors(
    before: dict[EntropyPart, float], ranks: dict[EntropyPart, float]
) -> None:
    """Whatever the correlations are: the sum is 1, no part is below its floor, and none moves by more than a step."""
    after = entropy.move(before, ranks)
    assert sum(after.values()) == pytest.approx(1, abs=1e-9)
    for part in PARTS:
        assert after[part] >= FLOORS[part] - 1e-9
        assert abs(after[part] - before[part]) <= STEP + 1e-9
    assert entropy.move(before, ranks) == after


@given(some_weights, st.lists(some_ranks, min_size=1, max_size=60))
def test_relevance_is_never_lost_however_many_steps_there_are(
    before: dict[EntropyPart, float], steps: list[dict[EntropyPart, float]]
) -> None:
    """Steps of years: relevance has at least .3, and the sum does not drift."""
    for ranks in steps:
        before = entropy.move(before, ranks)
    assert before["Hrel"] >= 0.3 - 1e-9
    assert sum(before.values()) == pytest.approx(1, abs=1e-9)
    assert entropy.check(entropy.as_value(before)) == entropy.as_value(before)


@given(some_weights, some_ranks, st.sampled_from(PARTS), st.floats(0, 2))
def test_a_part_that_goes_with_the_verdicts_more_gains_no_less(
    before: dict[EntropyPart, float], ranks: dict[EntropyPart, float], part: EntropyPart, more: float
) -> None:
    """The weight of a part never falls where its own correlation is higher."""
    higher = {**ranks, part: min(1.0, ranks[part] + more)}
    assert entropy.move(before, higher)[part] >= entropy.move(before, ranks)[part] - 1e-9


@settings(max_examples=50)
@given(some_weights, st.lists(st.builds(AnswerVerdict, some_parts, verdicts), max_size=LEAST - 1))
def test_too_few_verdicts_move_nothing(before: dict[EntropyPart, float], answers: list[AnswerVerdict]) -> None:
    """Below a hundred nothing is told from noise."""
    assert entropy.tune(before, answers) is None


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=30))
def test_a_rank_correlation_is_within_bounds_and_knows_no_scale(pairs: list[tuple[float, float]]) -> None:
    """It is that of the order alone; the other way round it is its opposite."""
    found = entropy.rank_correlation(pairs)
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    assert entropy.rank_correlation([(one, -other) for one, other in pairs]) == pytest.approx(-found, abs=1e-9)
    ranks = sorted({one for one, _ in pairs})
    assert entropy.rank_correlation([(ranks.index(one), other) for one, other in pairs]) == pytest.approx(found)


def _judged(many: int, **parts: int) -> list[AnswerVerdict]:
    """Answers of which each named part rises with the verdict (1), falls (-1), or says nothing (0)."""
    found = []
    for number in range(many):
        verdict = 1.0 if number % 2 else -1.0
        values = {part: 0.5 + 0.3 * sign * verdict if sign else (number // 2 % 2) * 0.5 for part, sign in parts.items()}
        found.append(AnswerVerdict(cast("EntropyParts", values), verdict))
    return found


def test_what_goes_with_the_verdicts_gains_and_what_goes_against_them_loses() -> None:
    """A part with no clear correlation, or with too few verdicts, moves only to make room."""
    moved = entropy.tune(WEIGHTS, _judged(LEAST, Hrel=0, Hcog=1, Hstruc=-1))
    assert moved is not None
    after, why = moved
    assert after["Hcog"] > 0.2 > after["Hstruc"]
    assert "100 answers: Hcog +1.00, Hstruc -1.00" in why
    assert entropy.tune(WEIGHTS, _judged(LEAST, Hrel=0, Hsol=0)) is None
    assert entropy.tune(WEIGHTS, _judged(LEAST - 1, Hcog=1) + _judged(1, Hrel=0)) is None


def _measure(root: Root, begun: TrialWorld, many: int, days: int = 0) -> None:
    """Put answers of so many days later into the image whose diversity goes with a verdict."""
    for number in range(many):
        at = begun.now + timedelta(days=days - 1, minutes=-number)
        name = mission_id(at)
        brief = {"id": name, "text": f"Who lit lamp {number}?", "user": "tester"}
        begun.uvm.image.insert(root, brief, iso(at), {})
        good = bool(number % 2)
        root[roots.ENTROPY][name] = (0.5, 0.9 if good else 0.1, None, 0.0)
        root[roots.OUTCOMES][name] = (("rated_good" if good else "rated_bad", iso(at), "tester", ""),)


async def test_the_heartbeat_moves_the_weights_once_a_week_and_a_person_takes_that_back(tmp_path: Path) -> None:
    """No verdict counts in two steps; what a person brought back is left as it is for 90 days."""
    async with trial_world(tmp_path) as world:
        apply, door, before = world.uvm.image.shared.apply, Door(world.uvm), world.now
        await apply(lambda root: _measure(root, world, LEAST))
        tuned = await apply(lambda root: entropy_days.tune_weights(root, world.now))
        assert tuned.startswith("the weights of the metric moved; rank correlation with the verdicts on 100 answers")
        page = await door("cem")
        assert page["weights"]["Hcog"] > 0.2
        assert page["weights_since"] == iso(before)
        assert {"day": iso(before)[:10], "text": "weights by heartbeat"} in page["marks"]
        assert (await door("cem", user="bob"))["marks"] == []
        assert await apply(lambda root: entropy_days.tune_weights(root, world.now + timedelta(days=6))) == ""
        assert await apply(lambda root: entropy_days.tune_weights(root, world.now + timedelta(days=7))) == ""
        await apply(lambda root: _measure(root, world, LEAST, 6))
        assert await apply(lambda root: entropy_days.tune_weights(root, world.now + timedelta(days=7)))
        lineage = await door("slot_show", slot="cem.weights")
        assert [each["by"] for each in lineage["values"]] == ["codex", "heartbeat", "heartbeat"]
        with world.uvm.image.snapshot() as root:
            told = explain_redefined(Asking(root, world.uvm.journal, None), entropy.NAME)
        assert told is not None
        assert "by heartbeat: rank correlation" in told["because"][0]["text"]
        back = ChangeOrigin("ann", iso(world.now + timedelta(days=8)))
        await apply(lambda root: slot_values.roll_back(root, entropy.NAME, 0, back))
        assert (await door("cem"))["weights"] == dict(WEIGHTS)
        await apply(lambda root: _measure(root, world, LEAST, 15))
        for days, is_moved in ((20, False), (100, True)):
            later = partial(entropy_days.tune_weights, now=world.now + timedelta(days=days))
            assert bool(await apply(later)) is is_moved


async def test_the_days_are_weighed_by_the_weights_that_act(tmp_path: Path) -> None:
    """A step changes all days alike, so that it is no fall of the metric."""
    async with trial_world(tmp_path) as world:
        await world.uvm.image.shared.apply(lambda root: _measure(root, world, 10))
        door = Door(world.uvm)
        before = (await door("cem"))["days"]
        await world.give(entropy.NAME, {"Hrel": 0.3, "Hcog": 0.6, "Hsol": 0.05, "Hstruc": 0.05})
        after = (await door("cem"))["days"]
        assert [each["parts"] for each in after] == [each["parts"] for each in before]
        assert [each["cem"] for each in after] != [each["cem"] for each in before]


@pytest.mark.parametrize(
    "value",
    [
        {"Hrel": 0.2, "Hcog": 0.3, "Hsol": 0.3, "Hstruc": 0.2}, {"Hrel": 0.4, "Hcog": 0.2, "Hsol": 0.2, "Hstruc": 0.3},
        {"Hrel": 1.0}, "lean", 0.4, None, {"Hrel": "much", "Hcog": 0.2, "Hsol": 0.2, "Hstruc": 0.2},
    ],
)  # fmt: skip
async def test_what_are_no_weights_is_refused(tmp_path: Path, value: object) -> None:
    """Below a floor, with another sum, with a part too few; and a trial, which no answer could decide."""
    async with trial_world(tmp_path) as world:
        with pytest.raises(BriefError) as refused:
            await world.give(entropy.NAME, value)
        assert "its floor" in refused.value.remedy
        with pytest.raises(Refused):
            await world.nights().begin(entropy.NAME, {"Hrel": 0.7, "Hcog": 0.1, "Hsol": 0.1, "Hstruc": 0.1}, ANN)
