"""Kinds of index: each has its segments, and a segment without anything is none."""

from __future__ import annotations

import numpy as np

from batos.memory.indexes import kinds, vectors
from batos.memory.indexes.postings import Entry


def test_a_segment_is_built_for_each_index_of_entries() -> None:
    """Vectors come later."""
    assert kinds.build_each([Entry(1, "", "lamp")]).keys() == {"text", "links"}


def test_a_segment_without_its_entries_is_none() -> None:
    """Of each kind; what has none of those that go stays byte for byte."""
    made = {**kinds.build_each([Entry(1, "", "lamp")]), "vectors": vectors.build(np.ones(1, np.int64), np.ones((1, 1)))}
    for kind, data in made.items():
        assert kinds.without(kind, data, {1}) == b""
        assert kinds.without(kind, data, {2}) == data
