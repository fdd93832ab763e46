"""The index of names: what every index does, and which chunks a name names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np
from tests.memory.indexes.conformance import HOLM, SKARN, Among, Index, IndexConformance, each_of

from batos.memory.indexes.entries import Entry, Hit
from batos.memory.indexes.links import MOST_NAMED, LinkIndex, build, merge


class TestLinkConformance(IndexConformance):
    """The laws that every index keeps."""

    def make(self) -> Index:
        return LinkIndex()

    def build(self, entries: Iterable[Entry]) -> bytes:
        return build(entries)

    def merge(self, segments: Sequence[bytes], gone: Container[int]) -> bytes:
        return merge(segments, gone)

    def ask(self, index: Index, query: str, most: int = 10, among: Among = None) -> list[Hit]:
        assert isinstance(index, LinkIndex)
        return index.search(query, most, each_of(among))


def index_of(*entries: Entry) -> LinkIndex:
    """An index of these entries."""
    index = LinkIndex()
    index.add(0, build(entries))
    return index


def test_a_text_is_linked_to_what_it_names() -> None:
    """By a title, with and without its brackets; who may not be found is not named."""
    index = index_of(HOLM, SKARN)
    assert [found.name for found in index.mentions("Gulls of Skarn sleep at Holm Light.")] == ["skarn", "holm light"]
    assert index.resolve("holm light") == [HOLM.id]
    assert index.resolve("holm light", lambda ids: np.zeros(len(ids), bool)) == []


def test_a_name_of_many_names_nobody() -> None:
    """A title such as `Notes` says nothing."""
    index = index_of(*(Entry(number, "Notes", "x") for number in range(MOST_NAMED + 1)))
    assert index.resolve("notes") == []
    index.hide([0])
    assert len(index.resolve("notes")) == MOST_NAMED


def test_a_heading_names_its_part_and_a_title_the_first() -> None:
    """Later parts of a document are not called by its title."""
    index = index_of(
        Entry(1, "Lighthouses", "x", "", True),
        Entry(2, "Lighthouses", "y", "Lights > Skarn Rock", False),
    )
    assert index.resolve("lighthouses") == [1]
    assert index.resolve("skarn rock") == [2]
