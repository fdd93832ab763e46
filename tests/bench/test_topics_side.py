"""Cutting by topics: where the vectors of neighbours differ, under a limit, and never through a unit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.test_text_units import PIECES

from batos.memory.text_units import tokens_of, units_of
from topics_side import topic_chunks

TEXT = "The lamp is lit. The wick is new. The lens is clean. The cook bakes. The bread is warm. The oven is hot."


def test_the_cut_is_where_the_topic_changes() -> None:
    """Three sentences of the one and three of the other make two parts."""
    vectors = np.array([[1, 0.1], [1, 0], [1, 0.2], [0.1, 1], [0, 1], [0.2, 1]])
    found = topic_chunks(TEXT, units_of(TEXT), vectors)
    assert [TEXT[each.start : each.end] for each in found] == [TEXT[:52], TEXT[53:]]


def test_a_limit_holds_whatever_the_vectors_say() -> None:
    """Sentences that are all alike are cut by the limit."""
    found = topic_chunks(TEXT, units_of(TEXT), np.ones((6, 2)), most=9)
    assert all(tokens_of(TEXT[each.start : each.end]) <= 9 for each in found)
    assert len(found) > 2


def test_a_heading_begins_a_part_and_ends_none() -> None:
    """Also where its vector is nearer to what stands before it."""
    text = "The lamp is lit.\n\n# Lamp\n\nThe cook bakes."
    found = topic_chunks(text, units_of(text), np.array([[1, 0], [1, 0], [0, 1]]))
    assert [(text[each.start : each.end], each.heading) for each in found] == [
        ("The lamp is lit.", ""), ("# Lamp\n\nThe cook bakes.", "Lamp"),
    ]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(1, 60), st.integers(0, 99))
def test_chunks_hold_all_units_in_order(text: str, most: int, seed: int) -> None:
    """Whatever the vectors are; only a unit alone is longer than the limit."""
    units = units_of(text)
    found = topic_chunks(text, units, np.random.default_rng(seed).standard_normal((len(units), 4)), most)
    within = [[unit for unit in units if chunk.start <= unit.start and unit.end <= chunk.end] for chunk in found]
    assert [unit for each in within for unit in each] == units
    assert all(before.end <= after.start for before, after in pairwise(found))
    for chunk, each in zip(found, within, strict=True):
        assert len(each) == 1 or tokens_of(text[chunk.start : chunk.end]) <= most + 1e-6


def test_vectors_of_nothing_are_no_fault() -> None:
    """An embedder may return a vector of zeros, and a text may be empty."""
    assert topic_chunks("", [], np.zeros((0, 4))) == []
    assert len(topic_chunks("One. Two.", units_of("One. Two."), np.zeros((2, 4)))) >= 1
