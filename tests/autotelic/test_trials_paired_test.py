"""Paired tests: what has no effect is hardly ever kept however often one looks, and what is better is found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic.trials import (
    PairedAnswer,
    TrialDecision,
    TrialRules,
    evidence,
    find_excess,
    find_worse_kind,
    judge_pairs,
    threshold,
)

differences = st.lists(st.floats(-1, 1), max_size=60)


@given(differences, st.randoms(use_true_random=False), st.booleans())
def test_evidence_does_not_depend_on_the_order(given: list[float], shuffler: random.Random, falls: bool) -> None:
    """So that a trial which goes on another night is no other trial."""
    other = list(given)
    shuffler.shuffle(other)
    assert evidence(other, falls=falls) == pytest.approx(evidence(given, falls=falls), rel=1e-6)


@given(differences)
def test_no_question_is_no_evidence_and_evidence_is_never_negative(given: list[float]) -> None:
    """Neither for a gain nor for harm; and what speaks for the one speaks against the other."""
    assert evidence([]) == pytest.approx(1.0)
    assert evidence(given) >= 0
    mirrored = evidence([-each for each in given], falls=True)
    assert mirrored == pytest.approx(evidence(given), rel=1e-6)


def drawn(chance: random.Random, gain: float, discordance: float) -> float:
    """The difference of one question."""
    luck = chance.random()
    better, worse = (discordance + gain) / 2, (discordance - gain) / 2
    return 1.0 if luck < better else -1.0 if luck < better + worse else 0.0


def test_whoever_looks_after_each_question_is_rarely_fooled() -> None:
    """Ville: of lines without an effect at most one in twenty ever reaches twenty."""
    chance = random.Random(7)
    fooled = 0
    for _ in range(200):
        line: list[float] = []
        for _ in range(100):
            line.append(drawn(chance, 0.0, 0.4))
            if line[-1] > 0 and evidence(line) >= 20:
                fooled += 1
                break
    assert fooled <= 10


def run(chance: random.Random, gain: float, rules: TrialRules, step: int = 10) -> TrialDecision:
    """One trial, looked at after so many questions each."""
    pairs: list[PairedAnswer] = []
    while True:
        for _ in range(step):
            found = drawn(chance, gain, 0.25)
            pairs.append(PairedAnswer(str(len(pairs)), "AHN"[len(pairs) % 3], max(found, 0.0), max(-found, 0.0)))
        decision = judge_pairs(pairs, rules)
        if decision.word != "go on":
            return decision


@pytest.mark.parametrize(("gain", "word", "least"), [(0.15, "promote", 20), (0.0, "promote", 0), (-0.1, "drop", 23)])
def test_a_gain_is_kept_and_nothing_else(gain: float, word: str, least: int) -> None:
    """Of 24 trials each; of those without an effect at most two are kept."""
    chance = random.Random(11)
    counts: Counter[str] = Counter(run(chance, gain, TrialRules()).word for _ in range(24))
    assert counts[word] >= least
    assert gain > 0 or counts["promote"] <= 2


def answers(count: int, **more: object) -> Iterator[PairedAnswer]:
    """Better answers to so many questions."""
    return (PairedAnswer(str(number), "A", 1.0, 0.0, **more) for number in range(count))  # type: ignore[arg-type]


def test_what_is_better_waits_until_the_guards_are_shown() -> None:
    """Seven better answers are evidence enough; that nothing else got worse takes more."""
    few, many = judge_pairs(list(answers(10)), TrialRules()), judge_pairs(list(answers(90)), TrialRules())
    assert (few.word, many.word) == ("go on", "promote")
    assert "not shown yet" in few.reason


@pytest.mark.parametrize("worse", [{"passed": (False, True)}, {"ended": (False, True)}], ids=["the gate", "failures"])
def test_what_fails_more_often_is_not_kept(worse: dict[str, object]) -> None:
    """However right the other answers are."""
    pairs = [*answers(240), *answers(60, **worse)]
    assert judge_pairs(pairs, TrialRules()).word == "spent"


def test_a_kind_that_gets_worse_stops_what_helps_others() -> None:
    """Prompts that gained in the mean have lost nine points in one task: GEPA with Merge on IFBench."""
    pairs = [*answers(100), *(PairedAnswer(f"n{number}", "N", 0.0, 1.0) for number in range(10))]
    assert find_worse_kind(pairs) == "N"
    assert judge_pairs(pairs, TrialRules()).reason == "questions of the kind N got worse"


def test_what_is_too_dear_is_dropped_unless_the_gain_pays_for_it() -> None:
    """A call more for each question is paid by five points."""
    small = [PairedAnswer(str(n), "A", float(n % 50 == 0), 0.0, tokens=(900, 300), calls=(3, 1)) for n in range(100)]
    large = [PairedAnswer(str(n), "A", float(n % 4 == 0), 0.0, tokens=(900, 300), calls=(3, 1)) for n in range(100)]
    assert find_excess(small).startswith("it gains 0.02 for 3.0 times the tokens")
    assert not find_excess(large)


def test_all_trials_of_a_lever_together_are_rarely_fooled() -> None:
    """The chances of all thresholds add up to one in twenty."""
    assert 0.049 < sum(1 / threshold(tries) for tries in range(400)) <= 0.05
