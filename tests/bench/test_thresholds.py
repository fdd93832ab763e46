"""Thresholds are fitted on some documents and judged on others, and every set counts the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresholds
import thresholds_sets_side
from batos.memory.evidence import Evidence
from thresholds_families_side import FAMILIES

SCORES = st.lists(st.floats(0, 1), min_size=10, max_size=10)


def example(**fields: object) -> thresholds_sets_side.Example:
    """An example of a set."""
    given_ = {"set": "a", "document": "d", "kind": "fact", "language": "en", "question": "Who?", "evidence": Evidence()}
    return thresholds_sets_side.Example(**{**given_, **fields})  # type: ignore[arg-type]


def fit(shipped: list[float], other: list[float]) -> thresholds.Fit:
    """Scores of the value in the code, 1, and of another one, 2."""
    return thresholds.Fit(1, {1: shipped, 2: other}, [1.0] * len(shipped))


@given(SCORES)
def test_of_equals_the_value_in_the_code_is_chosen(scores: list[float]) -> None:
    """Nothing is gained by another value that is as good."""
    found = fit(scores, scores).across([0, 1] * 5)
    assert found["chosen"] == [1, 1]
    assert (found["gain"], found["spread"]) == (0, 0)


def test_a_value_is_chosen_without_the_share_that_it_is_judged_on() -> None:
    """A value that is good in one share alone is chosen for the other, and loses there."""
    found = fit([0.5, 0.5, 0.5, 0.5], [1.0, 1.0, 0.0, 0.0]).across([0, 0, 1, 1])
    assert found["chosen"] == [1, 2]
    assert found["gain"] == -0.25


def test_a_value_is_better_only_beyond_the_spread_in_folds_of_both_sorts() -> None:
    """A gain that is not above its deviation, and a gain in folds by document alone, change nothing."""
    good, spread = {"gain": 0.02, "spread": 0.01}, {"gain": 0.02, "spread": 0.02}
    assert thresholds.is_better({"by_document": good, "by_kind": good})
    assert not thresholds.is_better({"by_document": good, "by_kind": spread})


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30), st.booleans())
def test_all_sets_weigh_the_same(sets: list[str], wrong_too: bool) -> None:
    """However many examples a set has, and whether it has wrong ones."""
    examples = [example(set=each) for each in sets]
    examples += [example(set=each, is_right=False) for each in sets if wrong_too and each == "a"]
    found = thresholds.weights(examples, 3.0)
    for name in set(sets):
        weight = sum(each for each, of in zip(found, examples, strict=True) if of.set == name)
        assert weight == pytest.approx(1.0)


def test_a_threshold_has_its_value_again_after_a_trial() -> None:
    """A trial changes it only while it lasts."""
    before = thresholds.value_of("gate.LEAD")
    with thresholds.override("gate.LEAD", before + 1):
        assert thresholds.value_of("gate.LEAD") == before + 1
    assert thresholds.value_of("gate.LEAD") == before


def test_every_threshold_is_tried_with_its_own_value_among_the_others() -> None:
    """What a fold may choose includes what the code has."""
    for family in FAMILIES.values():
        for name, tried in family.grid.items():
            assert thresholds.value_of(name) in tried


def test_only_what_stands_between_the_marks_is_written(tmp_path: Path) -> None:
    """The words of the page stay."""
    page = tmp_path / "page.md"
    page.write_text(f"# Words\n\n{thresholds.BEGIN}Before.\n{thresholds.END}\n\nMore.\n", encoding="utf-8")
    thresholds.write({"thresholds": {}, "sets": {}}, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Words\n\n")
    assert text.endswith(f"{thresholds.END}\n\nMore.\n")
    assert "Before." not in text
    assert "| threshold | value |" in text


def test_questions_that_share_a_passage_are_of_one_document() -> None:
    """So that no fold has the passage of another."""
    rows = [{"id": "1", "gold_ids": ["x", "y"]}, {"id": "2", "gold_ids": ["z"]}, {"id": "3", "gold_ids": ["y", "w"]}]
    found = thresholds_sets_side.group_rows(rows)
    assert found["1"] == found["3"] != found["2"]
