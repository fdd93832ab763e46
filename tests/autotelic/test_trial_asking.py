"""Sealed figures: one figure a month, no question twice, and no way from it to a trial."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import slot_values, trial_asking, trial_nights, trial_verdicts, trials
from batos.autotelic.heartbeat import Allowance, Expense
from batos.autotelic.trial_asking import SealedQuestions
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.trial_documents import SealedFigure
from motion_worlds_side import TrialWorld, trial_world

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def calls(most: int) -> Allowance:
    """An allowance of so many calls."""
    return Allowance(lambda: True, Expense(1e9, most, 10**9))


def sealed_of(world: TrialWorld) -> SealedQuestions:
    """The duty of a world, with thirty questions."""
    world.made = {"2026-11-01T12:00:00.000Z": 30}
    return SealedQuestions(world.nights().parts)


def figures(world: TrialWorld) -> list[SealedFigure]:
    """The figures so far."""
    with world.uvm.image.snapshot() as root:
        return trial_asking.list_figures(root)


async def test_one_figure_a_month_within_the_budget_of_each_day(tmp_path: Path) -> None:
    """A round takes as many days as it needs; the next comes thirty days after it began."""
    async with trial_world(tmp_path, base=0.7) as world:
        sealed = sealed_of(world)
        assert await sealed.work(calls(20)) == "20 sealed questions"
        assert (len(world.asked), figures(world)) == (20, [])
        world.now += timedelta(days=1)
        assert await sealed.work(calls(20)) == "10 sealed questions, and the figure of this month"
        assert sorted(world.asked) == sorted(set(world.asked))
        assert all(each.startswith("sealed-") for each in world.asked)
        (figure,) = figures(world)
        assert (figure["questions"], figure["day"]) == (30, "2026-12-01")
        assert 0.4 < figure["share"] <= 1.0
        world.now += timedelta(days=28)
        assert await sealed.work(calls(99)) == ""
        world.now += timedelta(days=1)
        await sealed.work(calls(99))
        assert [each["day"] for each in figures(world)] == ["2026-12-30", "2026-12-01"]


async def test_without_questions_or_calls_no_round_begins(tmp_path: Path) -> None:
    """Nor does a question that was left without an answer count."""
    async with trial_world(tmp_path) as world:
        sealed = sealed_of(world)
        assert await sealed.work(calls(0)) == ""
        world.made = {}
        assert await sealed.work(calls(99)) == ""
        with world.uvm.image.snapshot() as root:
            assert not root["sealed"]
        world.made, world.stops_after = {"2026-11-01T12:00:00.000Z": 5}, 3
        await sealed.work(calls(99))
        assert figures(world) == []
        world.stops_after = None
        await sealed.work(calls(99))
        assert [each["questions"] for each in figures(world)] == [5]


async def test_the_duty_has_something_to_do_each_day_and_after_each_question(tmp_path: Path) -> None:
    """Where nothing changed it is left out."""
    async with trial_world(tmp_path) as world:
        duty = sealed_of(world).duty()

        def mark() -> str:
            with world.uvm.image.snapshot() as root:
                return duty.mark(root)

        marks = [mark()]
        assert mark() == marks[0]
        await duty.work(calls(3))
        marks.append(mark())
        world.now += timedelta(days=1)
        marks.append(mark())
        assert len(set(marks)) == 3


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 1)), min_size=1, max_size=30))
def test_no_question_counts_twice(noted: list[tuple[str, float]]) -> None:
    """However often it is noted, as after a kill between an answer and what comes next: the first worth stands."""
    root = Root()
    root["sealed"] = OOBTree()
    name = trial_asking.open_round(root, NOW)
    assert name is not None
    assert trial_asking.open_round(root, NOW + timedelta(days=40)) == name  # it goes on until it ends
    for item, worth in noted:
        trial_asking.note_worth(root, name, item, worth)
    root["sealed"][name]["ended"] = iso(NOW)
    (figure,) = trial_asking.list_figures(root)
    first = dict(reversed(noted))
    assert figure["questions"] == len(first)
    assert abs(figure["share"] - sum(first.values()) / len(first)) < 0.001
    assert trial_asking.open_round(root, NOW + timedelta(days=29)) is None
    assert trial_asking.open_round(root, NOW + timedelta(days=30)) is not None


def test_an_older_moment_of_the_image_has_no_figure() -> None:
    """It is shown as one that has none yet."""
    assert trial_asking.list_figures(Root()) == []


async def test_a_trial_asks_the_same_whatever_the_figure_is(tmp_path: Path) -> None:
    """Two worlds that differ in the figure alone try, keep and leave the same."""
    seen = []
    for share in (0.0, 1.0):
        async with trial_world(tmp_path / str(share), effects={("ROBIN.temperature", 0.3): 0.3}) as world:

            def put(root: Root, share: float = share) -> None:
                name = trial_asking.open_round(root, NOW)
                assert name is not None
                for number in range(40):
                    trial_asking.note_worth(root, name, f"i-{number}", share)
                root["sealed"][name]["ended"] = iso(NOW)

            await world.uvm.image.shared.apply(put)
            for _ in range(3):
                await world.night()
            told = [(each["lever"], each["state"], each["asked"], each["evidence"]) for each in world.documents()]
            seen.append((told, world.asked, world.acting()))
            assert not any(each.startswith("sealed-") for each in world.asked)
    assert seen[0] == seen[1]


def test_no_module_of_trials_knows_the_sealed_questions() -> None:
    """Neither by an import, nor by the key of their record, nor by the word of their use."""
    for module in (slot_values, trial_nights, trial_verdicts, trials):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        words = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
        names = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
        imported = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        assert roots.SEALED not in words
        assert "SEALED" not in names
        assert trial_asking.__name__ not in imported
    assert roots.SEALED not in trial_nights.USES
