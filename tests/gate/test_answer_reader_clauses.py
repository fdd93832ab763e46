"""Clauses: they are the whole of a sentence, and none of them is too short to state something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST as MOST_TIMES
from tests.memory.growing import growth

from batos.gate import thresholds
from batos.gate.answer_reader import MOST, clause_spans
from batos.gate.languages import stems

said = st.lists(
    st.sampled_from("lamp, oil keeper; who and which storm (wick 1804) - in, 灯台守、 منارة،".split()), max_size=30
)


@given(words=said)
def test_clauses_are_the_whole_sentence_in_order(words: list[str]) -> None:
    """Nothing is left out and nothing twice; a clause of several says something."""
    text = " ".join(words)
    spans = clause_spans(text, None)
    assert "".join(text[start:end] for start, end in spans) == text
    assert len(spans) <= MOST
    assert len(spans) == 1 or all(len(stems(text[start:end], None)) >= thresholds.CLAUSE_WORDS for start, end in spans)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Anna Hale kept the lamp, who was born on the island in 1904.", 2),
        ("The keeper trims the wick at eight and fills the can with oil.", 2),
        ("The lamp needs oil, wicks, glass.", 1),
        ("Der Wärter putzt die Lampe, weil das Glas am Morgen beschlägt.", 2),
        ("灯台守が毎朝ランプを磨く、霧の夜に鐘を鳴らす。", 2),
    ],
)
def test_marks_and_words_bound_clauses(text: str, count: int) -> None:
    """A list of single words has one clause."""
    assert len(clause_spans(text, None)) == count


def test_a_long_sentence_of_many_bounds_takes_time_by_its_length() -> None:
    """Each word is looked at once: the sentence of a model may be as long as its answer."""
    assert growth(lambda size: clause_spans("a: " * size, "English"), 1_000) < MOST_TIMES
