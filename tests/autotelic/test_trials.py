"""Records of trials: a question counts once, a change is kept or undone whole, and what stands on it is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import slot_values, trial_verdicts, trials
from batos.autotelic.slot_values import Changes
from batos.autotelic.trials import PairedAnswer, ScreenAnswer, TrialAnswer
from batos.image.roots import Root
from batos.protocol.errors import NotFound, Refused
from batos.records.redefinitions import ChangeOrigin
from motion_worlds_side import TrialWorld, trial_world

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AT = "2026-11-30T12:00:00.000Z"
MIND, ANN = ChangeOrigin(trials.HEARTBEAT, AT, "Hrel: dip"), ChangeOrigin("ann", AT, "I want it")


def begin(root: Root, name: str = "mind.temperature", origin: ChangeOrigin = ANN) -> str:
    """Begin a trial of a lever: of its first other value, if a person asks."""
    lever = next(each for each in slot_values.list_levers(root) if each.name == name)
    return trials.begin(root, lever, lever.others if origin is MIND else lever.others[:1], origin, NOW)


def answer(number: int, new: float = 1.0, old: float = 0.0) -> TrialAnswer:
    """The answers to a question."""
    return TrialAnswer(PairedAnswer(f"i-{number}", "A", new, old), f"m-old{number}", f"m-new{number}")


def win(root: Root, name: str) -> None:
    """Answer questions better until that decides."""
    for number in range(trials.ASKED):
        if trials.state_of(root, name) == "trying":
            trial_verdicts.note_answer(root, name, answer(number), AT)


def temperature(root: Root) -> object:
    """The value of one of the slots that are tried."""
    return slot_values.find_place(root, "ROBIN.temperature").read()


async def in_world(world: TrialWorld, change: object) -> object:
    """Make a change of the image as the writer does."""
    return await world.uvm.image.shared.apply(change)  # type: ignore[arg-type]  # a function of the root


async def test_what_is_better_becomes_part_of_the_mind_and_can_be_undone(tmp_path: Path) -> None:
    """In the commit of the deciding answer; undone, the former value acts, and the lineage has both."""

    def look(root: Root) -> None:
        before = temperature(root)
        name = begin(root)
        win(root, name)
        told = trials.document(root, name)
        assert (told["state"], temperature(root)) == ("promoted", told["changes"][0]["value"])
        assert told["losses"] == 0
        assert told["evidence"] >= told["needed"]
        trial_verdicts.undo(root, name, ANN)
        assert (trials.state_of(root, name), temperature(root)) == ("undone", before)
        lineage = slot_values.describe(root, "ROBIN.temperature")["values"]
        assert [each["by"] for each in lineage] == ["codex", "trial", "ann"]
        assert {each["trial"] for each in lineage[1:]} == {name}
        with pytest.raises(Refused, match="is undone"):
            trial_verdicts.undo(root, name, ANN)

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


@given(st.lists(st.integers(0, 30), max_size=60))
def test_a_question_counts_once(numbers: list[int]) -> None:
    """However often it is noted, in any order: as after a kill between an answer and what comes next."""
    root = Root()
    root["trials"] = OOBTree()
    name = fake_trial(root)
    for number in numbers:
        trial_verdicts.note_answer(root, name, answer(number, new=float(number % 2), old=float(number % 3 == 0)), AT)
    assert trials.list_asked(root, name, judged=True) <= {f"i-{number}" for number in numbers}
    told = trials.document(root, name)
    assert told["asked"] == len(trials.list_asked(root, name, judged=True))


def fake_trial(root: Root) -> str:
    """A trial that changes no slot."""
    kind = slot_values.KINDS[0]
    return trials.begin(root, slot_values.Lever("none", kind, (), ((),)), ((),), ANN, NOW)


async def test_two_trials_at_once_are_refused(tmp_path: Path) -> None:
    """What they do would mix; the one that goes on can be ended."""

    def look(root: Root) -> None:
        name = begin(root)
        with pytest.raises(Refused, match=name):
            begin(root, "mind.form")
        trial_verdicts.undo(root, name, ANN)
        assert begin(root, "mind.form") > name

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_a_trial_on_which_another_stands_is_not_undone_alone(tmp_path: Path) -> None:
    """The later one is named; a value that somebody gave the slot meanwhile is not overwritten either."""

    def look(root: Root) -> None:
        first = begin(root)
        win(root, first)
        second = begin(root)
        win(root, second)
        told = [trials.document(root, name)["needed"] for name in (first, second)]
        assert told[1] == 3 * told[0]  # a second trial of a lever needs more evidence
        assert trials.state_of(root, second) == "promoted"
        with pytest.raises(Refused, match=second):
            trial_verdicts.undo(root, first, ANN)
        slot_values.redefine(root, "ROBIN.temperature", 0.9, ANN)
        with pytest.raises(Refused, match="changed by somebody"):
            trial_verdicts.undo(root, second, ANN)

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_an_undone_value_is_barred_for_a_time(tmp_path: Path) -> None:
    """Ninety days, whether a person undid it or the probation."""

    def look(root: Root) -> None:
        name = begin(root)
        tried = trials.candidates_of(root, name)[0]
        win(root, name)
        for number in range(40):
            trial_verdicts.note_probe(root, name, PairedAnswer(f"p-{number}", "A", 0.0, 1.0), AT)
        told = trials.document(root, name)
        assert (told["state"], told["reason"]) == ("undone", "the answers got worse after it was kept")
        assert told["probed"] < 40
        assert trials.list_barred(root, "mind.temperature", NOW + timedelta(days=89)) == {tried}
        assert not trials.list_barred(root, "mind.temperature", NOW + timedelta(days=91))

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_a_change_that_held_is_kept(tmp_path: Path) -> None:
    """After a hundred questions more; of one whose slots somebody changed meanwhile nothing is said."""

    def look(root: Root) -> None:
        name = begin(root)
        win(root, name)
        for number in range(trial_verdicts.PROBED):
            trial_verdicts.note_probe(root, name, PairedAnswer(f"p-{number}", "A", 1.0, 1.0), AT)
        assert trials.state_of(root, name) == "kept"
        other = begin(root, "mind.num_predict")
        win(root, other)
        slot_values.redefine(root, "BABS.num_predict", 7, ANN)
        trial_verdicts.note_probe(root, other, PairedAnswer("p-0", "A", 1.0, 1.0), AT)
        assert trials.state_of(root, other) == "void"

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_a_persona_line_is_kept_by_a_person_alone(tmp_path: Path) -> None:
    """Risk 3: it waits, whatever the evidence."""

    def look(root: Root) -> None:
        name = begin(root, "mind.line")
        before: Changes = trials.before_of(root, name)
        win(root, name)
        assert trials.state_of(root, name) == "waiting"
        assert slot_values.find_place(root, "ROBIN.line").read() == before[0].value
        trial_verdicts.promote(root, name, ANN._replace(trial=name))
        assert slot_values.find_place(root, "ROBIN.line").read() != before[0].value

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_values_are_compared_first_and_the_best_is_tried(tmp_path: Path) -> None:
    """Where none is better than what acts, or none changes an answer, nothing is tried."""

    def look(root: Root) -> None:
        name = begin(root, origin=MIND)
        for number in range(trials.SCREENED):
            worth = (0.2, 0.1, 0.9, 0.3)[: 1 + len(trials.candidates_of(root, name))]
            trial_verdicts.note_screen(root, name, f"s-{number}", ScreenAnswer(worth, 2), AT)
        assert trials.state_of(root, name) == "trying"
        tried = trials.candidates_of(root, name)
        trial_verdicts.undo(root, name, ANN)
        lever = next(each for each in slot_values.list_levers(root) if each.name == "mind.temperature")
        assert tried == lever.others[1:2]
        for changed, reason in ((1, "no value answered more"), (0, "no value changed an answer")):
            other = begin(root, origin=MIND)
            for number in range(trials.SCREENED):
                trial_verdicts.note_screen(root, other, f"s-{number}", ScreenAnswer((0.5,) * 4, changed), AT)
            assert trials.document(root, other)["reason"].startswith(reason)

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_answers_that_differ_from_themselves_compare_nothing(tmp_path: Path) -> None:
    """The old form was asked twice, and the second answers were others."""

    def look(root: Root) -> None:
        name = begin(root)
        for number in range(trials.NOISE):
            trial_verdicts.note_noise(root, name, f"i-{number}", 1.0)
        trial_verdicts.note_answer(root, name, answer(0), AT)
        assert trials.state_of(root, name) == "void"

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_a_trial_that_waits_for_questions_ends_after_a_month(tmp_path: Path) -> None:
    """Meanwhile no other may begin."""

    def look(root: Root) -> None:
        name = begin(root)
        trial_verdicts.end_stale(root, name, AT, AT)
        assert trials.state_of(root, name) == "trying"
        trial_verdicts.end_stale(root, name, "2026-12-31T12:00:00.000Z", AT)
        assert (trials.state_of(root, name), trials.find_open(root)) == ("spent", None)

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


@given(st.lists(st.sampled_from((-1.0, 0.0, 1.0)), max_size=40))
def test_six_examples_are_shown_of_both_sides_if_there_are(differences: list[float]) -> None:
    """Where few became worse, more of those that became better are shown; what did not change is no example."""
    root = Root()
    root["trials"] = OOBTree()
    name = fake_trial(root)
    trials.find(root, name)["needed"] = 1e9
    noted = 0
    for number, each in enumerate(differences):
        if trials.state_of(root, name) == "trying":
            trial_verdicts.note_answer(root, name, answer(number, new=max(each, 0.0), old=max(-each, 0.0)), AT)
            noted += 1
    better, worse = (sum(each == side for each in differences[:noted]) for side in (1.0, -1.0))
    shown = [each.pair.difference for each in trials.list_examples(root, name)]
    assert len(shown) == min(trials.EXAMPLES, better + worse)
    assert min(3, worse) <= sum(each < 0 for each in shown)
    assert min(3, better) <= sum(each > 0 for each in shown)


async def test_a_name_that_is_none(tmp_path: Path) -> None:
    """The error says where the names are."""
    async with trial_world(tmp_path) as world:
        with world.uvm.image.snapshot() as root, pytest.raises(NotFound, match="no trial"):
            trials.complete_id(root, "last")


async def test_a_probation_ends_also_where_its_value_cannot_be_taken_back(tmp_path: Path) -> None:
    """A person brought back what a later trial had changed: that one stands, the first is left to the person."""

    def look(root: Root) -> None:
        first = begin(root)
        win(root, first)
        second = begin(root)
        win(root, second)
        for change in trials.candidates_of(root, first)[0]:
            slot_values.redefine(root, change.slot, change.value, ANN)
        assert [trials.state_of(root, each) for each in (first, second)] == ["promoted", "promoted"]
        for number in range(trial_verdicts.PROBED):
            trial_verdicts.note_probe(root, first, answer(1_000 + number, new=0.0, old=1.0).pair, AT)
        assert trials.state_of(root, first) == "void"

    async with trial_world(tmp_path) as world:
        await in_world(world, look)


async def test_a_slot_that_the_codex_took_away_ends_its_probation(tmp_path: Path) -> None:
    """There is nothing to bring back; no beat fails by it."""

    def look(root: Root) -> None:
        name = begin(root, "ROBIN.sages_koan_protocol_.when")
        win(root, name)
        robin = root["robin_prototype_obj"]
        robin.protocols = tuple(each for each in robin.protocols if each != "sages_koan_protocol_")
        trial_verdicts.note_probe(root, name, answer(1_000).pair, AT)
        assert trials.state_of(root, name) == "void"

    async with trial_world(tmp_path) as world:
        await in_world(world, look)
