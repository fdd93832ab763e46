"""What every index of memory does, as one class of tests that each inherits."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batos.memory.indexes.postings import Entry, Numbers
from batos.protocol.errors import IndexDamaged

Among = Callable[[int], bool] | None

LAMP = Entry(3, "The Lamp", "The clockwork of Holm Light is wound every four hours. Oil is dear.")
HOLM = Entry(5, "Holm Light (lighthouse)", "Holm Light stands on the island Skarn. The Lamp was lit in 1848.")
SKARN = Entry(8, "Skarn", "Gulls cry over the harbour. Ada Brandt keeps Holm Light.")
BRANDT = Entry(11, "Ada Brandt", "Ada Brandt was born in Tromso, and her brother Nils Brandt in Skarn.")
NONE = Entry(13, "", "Nobody saw Ada Brandt at night.")
CHINESE = Entry(17, "灯塔", "这座灯塔有三十米高。Skarn 岛上没有别的灯塔。")
ENTRIES = (LAMP, HOLM, SKARN, BRANDT, NONE, CHINESE)

QUERIES = (
    "Who keeps Holm Light?",
    "When was The Lamp lit?",
    "Where was Ada Brandt born?",
    "灯塔有多高？",
    "Skarn",
)
HOSTILE = (
    "",
    " ",
    "the",
    '"',
    '"Holm Light',
    "AND OR NOT (",
    "NOT Skarn",
    "-Skarn",
    "*",
    "Ska*",
    "?",
    "how do I use a.b()",
    "(Skarn OR Lamp) Ada",
    "def f(x: int) -> str:\n    return f'{x!r}'\n",
    "C++ C# node.js don't foo-bar",
    "🦇👩‍👩‍👧",
    "İstanbul ẞ ﬁ Ⅷ",
    "\ud800 \x00 \x1b[2J \u202e",
    "\\d+(",
    "'; DROP TABLE entries; --",
    "%s %(name)s {0} {name}",
    "e\u0301\u0301\u0301",
    "lamp " * 5000,
    "ا" * 3000,
)

words = st.sampled_from("lamp light skarn ada oil gull storm tide brass Holm Brandt".split())
texts = st.lists(words, max_size=12).map(" ".join)
entry_lists = st.lists(
    st.builds(Entry, st.integers(0, 40), st.one_of(st.just(""), st.lists(words, max_size=2).map(" ".join)), texts),
    max_size=12,
    unique_by=lambda entry: entry.id,
)
#: Entries with the number of the segment that each comes in.
divided = entry_lists.flatmap(
    lambda entries: st.tuples(
        st.just(entries), st.lists(st.integers(0, 3), min_size=len(entries), max_size=len(entries))
    )
)


#: Each heir is a class of its own, which is what this check is about.
INHERITED = [HealthCheck.differing_executors]


class Hit(NamedTuple):
    """An entry that a search found, and how well it matches."""

    id: int
    score: float


def hits_of(found: Mapping[int, float]) -> list[Hit]:
    """Return what a search found, in its order."""
    return [Hit(*each) for each in found.items()]


class Index(Protocol):
    """Segments by their keys, as each index holds them."""

    def add(self, key: Hashable, segment: bytes) -> None:
        """Add a segment."""
        ...

    def drop(self, key: Hashable) -> None:
        """Leave out a segment."""
        ...

    def ids(self) -> set[int]:
        """Return the ids of what can be found."""
        ...


def every(ids: Numbers) -> np.ndarray:
    """Tell that all of an array may be found."""
    return np.ones(len(ids), bool)


def each_of(among: Among) -> Callable[[Numbers], np.ndarray]:
    """What tells of an array, by what tells of a number."""
    return every if among is None else lambda ids: np.array([among(each) for each in ids.tolist()], bool)


def parts(entries: Sequence[Entry], numbers: Sequence[int]) -> list[list[Entry]]:
    """Return the entries of each segment."""
    return [[entry for entry, own in zip(entries, numbers, strict=True) if own == part] for part in range(4)]


class IndexConformance:
    """The laws of an index. An heir says how its segments are made, and asks in its own form."""

    def make(self) -> Index:
        """Return an index without segments."""
        raise NotImplementedError

    def build(self, entries: Iterable[Entry]) -> bytes:
        """Return a segment of entries."""
        raise NotImplementedError

    def merge(self, segments: Sequence[bytes], gone: Container[int]) -> bytes:
        """Return one segment of several."""
        raise NotImplementedError

    def ask(self, index: Index, query: str, most: int = 10, among: Among = None) -> list[Hit]:
        """Return what the index finds for a query."""
        raise NotImplementedError

    def built(self, *segments: Iterable[Entry]) -> Index:
        """Return an index of segments of these entries, with their numbers as keys."""
        index = self.make()
        for key, entries in enumerate(segments):
            index.add(key, self.build(entries))
        return index

    def answers(self, index: Index) -> list[list[Hit]]:
        """Return what the index finds for each of the queries."""
        return [self.ask(index, query) for query in QUERIES]

    def found(self, index: Index) -> set[int]:
        """Return the ids of everything that any of the queries finds."""
        return {hit.id for hits in self.answers(index) for hit in hits}

    def test_what_is_added_is_found(self) -> None:
        """Entries of each segment are found, and each query finds something."""
        index = self.built(ENTRIES[:3], ENTRIES[3:])
        assert all(self.answers(index))
        assert self.found(index) <= index.ids() <= {entry.id for entry in ENTRIES}

    def test_the_best_comes_first(self) -> None:
        """Hits are ordered by score, those of one score by id, and each entry is found once."""
        for hits in self.answers(self.built(ENTRIES[:2], ENTRIES[2:])):
            assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))
            assert len({hit.id for hit in hits}) == len(hits)

    def test_no_more_is_found_than_asked_for(self) -> None:
        """A search for fewer finds the first of a search for more, and one for none finds none."""
        index = self.built(ENTRIES)
        for query in QUERIES:
            every = self.ask(index, query, 100)
            assert [self.ask(index, query, most) for most in range(4)] == [every[:most] for most in range(4)]
            assert self.ask(index, query, -1) == []

    def test_what_is_dropped_is_gone(self) -> None:
        """An index without a segment is as one that never had it, and dropping an unknown key does nothing."""
        index = self.built(ENTRIES[:3], ENTRIES[3:])
        index.drop(1)
        index.drop("unknown")
        assert self.answers(index) == self.answers(self.built(ENTRIES[:3]))
        assert index.ids() == self.built(ENTRIES[:3]).ids()

    def test_a_key_names_one_segment(self) -> None:
        """A segment under a key that there is takes the other's place."""
        index = self.built(ENTRIES[:3])
        index.add(0, self.build(ENTRIES[3:]))
        assert self.answers(index) == self.answers(self.built(ENTRIES[3:]))

    def test_a_damaged_segment_leaves_the_index_as_it_was(self) -> None:
        """What is under the key stays if the new bytes are damaged."""
        index = self.built(ENTRIES)
        with pytest.raises(IndexDamaged):
            index.add(0, b"damaged")
        assert self.answers(index) == self.answers(self.built(ENTRIES))

    def test_only_those_among_which_to_search_are_found(self) -> None:
        """The others are left out, and those that are found have the same scores."""
        index = self.built(ENTRIES)
        for query in QUERIES:
            every = self.ask(index, query, 100)
            for entry in ENTRIES:
                kept = [hit for hit in every if hit.id == entry.id]
                assert self.ask(index, query, 100, {entry.id}.__contains__) == kept
            others = {hit.id for hit in every[1:]}
            assert self.ask(index, query, 1, others.__contains__) == every[1:2]

    def test_an_empty_index_finds_nothing(self) -> None:
        """No segment, or an empty one: nothing is found."""
        for index in (self.make(), self.built([])):
            assert (self.found(index), index.ids()) == (set(), set())

    @pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
    def test_any_query_is_only_a_query(self, query: str) -> None:
        """Nothing in a query is a command, and none raises."""
        index = self.built(ENTRIES)
        assert {hit.id for hit in self.ask(index, query, 100)} <= index.ids()

    def test_any_text_can_be_indexed(self) -> None:
        """What is hostile as a query is as harmless as an entry."""
        entries = [Entry(number, text, text) for number, text in enumerate(HOSTILE)]
        index = self.built(entries)
        assert self.build(entries) == self.merge([self.build(entries)], ())
        assert self.found(index) <= index.ids()

    def test_an_id_may_be_large(self) -> None:
        """Ids are whole numbers of 64 bits."""
        entries = [Entry(-(2**63), HOLM.title, HOLM.text), Entry(2**63 - 1, SKARN.title, SKARN.text)]
        assert self.found(self.built(entries)) == {-(2**63), 2**63 - 1}

    @settings(suppress_health_check=INHERITED)
    @given(divided, st.randoms(use_true_random=False))
    def test_a_merge_is_a_segment_of_all(
        self, entries_numbers: tuple[list[Entry], list[int]], chance: random.Random
    ) -> None:
        """Segments merged are, byte for byte, the segment that is built of all that is not gone, in any order."""
        entries, numbers = entries_numbers
        gone = {entry.id for entry in entries if chance.random() < 0.3} | {77}
        segments = [self.build(part) for part in parts(entries, numbers)]
        chance.shuffle(segments)
        kept = [entry for entry in entries if entry.id not in gone]
        chance.shuffle(kept)
        assert self.merge(segments, gone) == self.build(kept)
        assert self.merge([self.merge(segments[:2], gone), self.merge(segments[2:], ())], gone) == self.build(kept)

    @settings(suppress_health_check=INHERITED)
    @given(divided, texts, st.permutations(range(4)))
    def test_the_order_of_segments_does_not_matter(
        self, entries_numbers: tuple[list[Entry], list[int]], query: str, order: list[int]
    ) -> None:
        """Segments added in any order, or as one, find the same with the same scores."""
        entries, numbers = entries_numbers
        segments = [self.build(part) for part in parts(entries, numbers)]
        one, other = self.make(), self.make()
        for key in range(4):
            one.add(key, segments[key])
            other.add(order[key], segments[order[key]])
        found = self.ask(one, query, 100)
        assert self.ask(other, query, 100) == found
        assert self.ask(self.built(entries), query, 100) == found

    @settings(max_examples=60, suppress_health_check=INHERITED)
    @given(st.data())
    def test_bytes_that_are_not_a_segment_are_refused(self, data: st.DataObject) -> None:
        """Cut, changed or foreign bytes raise IndexDamaged and nothing else."""
        whole = self.build(ENTRIES)
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = bytes((*whole[:place], whole[place] ^ data.draw(st.integers(1, 255)), *whole[place + 1 :]))
        for damaged in (whole[:place], changed, whole + b"x", data.draw(st.binary(max_size=200))):
            with pytest.raises(IndexDamaged):
                self.make().add(0, damaged)
            with pytest.raises(IndexDamaged):
                self.merge([whole, damaged], ())
