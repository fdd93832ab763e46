"""Segments of words: bytes are the same however they came about, and damaged ones are refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.indexes import postings
from batos.memory.indexes.postings import MOST_TIMES
from batos.protocol.errors import BatosError, IndexDamaged

KIND = b"test"
words = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=4)
counts = st.dictionaries(st.integers(0, 50), st.dictionaries(words, st.integers(1, MOST_TIMES), max_size=4), max_size=6)


def held(segment: bytes) -> dict[int, dict[str, int]]:
    """What each id of a segment holds."""
    read = postings.read_segment(KIND, segment)
    found: dict[int, dict[str, int]] = {id_: {} for id_ in read.ids.tolist()}
    for word in read.word_list():
        begin, end = read.run(word)
        for place, times in zip(read.places[begin:end].tolist(), read.times[begin:end].tolist(), strict=True):
            found[int(read.ids[place])][word.decode()] = times
    return found


@given(counts)
def test_a_segment_holds_what_it_was_built_of(given_: Mapping[int, Mapping[str, int]]) -> None:
    """Of every id, also of one without a word; a word that is not there has no run."""
    segment = postings.build(KIND, given_)
    assert held(segment) == given_
    assert postings.read_segment(KIND, segment).run(b"no such word") == (0, 0)
    there = {word.encode() for count in given_.values() for word in count}
    assert all(postings.holds_any(KIND, segment, {word, b"no such word"}) for word in there)
    assert not postings.holds_any(KIND, segment, {b"no such word"})


@given(counts, counts, st.sets(st.integers(0, 50)))
def test_merged_segments_are_those_of_what_is_left(
    one: dict[int, dict[str, int]], other: dict[int, dict[str, int]], gone: set[int]
) -> None:
    """The bytes are those of a segment that was built at once; of an id in both the later counts."""
    merged = postings.merge(KIND, [postings.build(KIND, one), postings.build(KIND, other)], gone)
    left = {id_: count for id_, count in {**one, **other}.items() if id_ not in gone}
    assert merged == postings.build(KIND, left)


@given(counts, st.integers(0, 200), st.integers(1, 255))
def test_changed_bytes_are_refused_or_read(given_: dict[int, dict[str, int]], place: int, change: int) -> None:
    """Never another error."""
    segment = bytearray(postings.build(KIND, given_))
    segment[place % len(segment)] ^= change
    try:
        postings.read_segment(KIND, bytes(segment))
    except BatosError as error:
        assert isinstance(error, IndexDamaged)


def test_a_segment_of_another_kind_is_refused() -> None:
    """Names are not read as words."""
    with pytest.raises(IndexDamaged):
        postings.read_segment(b"name", postings.build(KIND, {1: {"lamp": 1}}))
