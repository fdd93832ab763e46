"""The index of names: what every index does, and which chunks a name names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np
from tests.memory.indexes.conformance import HOLM, SKARN, Among, Hit, Index, IndexConformance, each_of, every

from batos.memory.indexes import postings
from batos.memory.indexes.links import KIND, MOST_NAMED, LinkIndex, build
from batos.memory.indexes.postings import Entry
from batos.memory.mentions import mentions


class TestLinkConformance(IndexConformance):
    """The laws that every index keeps."""

    def make(self) -> Index:
        return LinkIndex()

    def build(self, entries: Iterable[Entry]) -> bytes:
        return build(entries)

    def merge(self, segments: Sequence[bytes], gone: Container[int]) -> bytes:
        return postings.merge(KIND, segments, gone)

    def ask(self, index: Index, query: str, most: int = 10, among: Among = None) -> list[Hit]:
        assert isinstance(index, LinkIndex)
        scores: dict[int, float] = {}
        for name in names_in(index, query):
            for id_ in index.resolve(name, each_of(among)):
                scores[id_] = max(scores.get(id_, 0.0), 1 / len(index.resolve(name, every)))
        found = sorted((-score, id_) for id_, score in scores.items())
        return [Hit(id_, -score) for score, id_ in found[: max(0, most)]]


class Names:
    """The names of an index, as a text is looked through for them."""

    def __init__(self, index: LinkIndex) -> None:
        self._index = index

    def __contains__(self, name: object) -> bool:
        return self._index.names_any(str(name), every)


def names_in(index: LinkIndex, text: str) -> list[str]:
    """Return the names of an index that a text mentions."""
    return [found.name for found in mentions(text, Names(index))]


def index_of(*entries: Entry) -> LinkIndex:
    """An index of these entries."""
    index = LinkIndex()
    index.add(0, build(entries))
    return index


def test_a_text_is_linked_to_what_it_names() -> None:
    """By a title, with and without its brackets; who may not be found is not named."""
    index = index_of(HOLM, SKARN)
    assert names_in(index, "Gulls of Skarn sleep at Holm Light.") == ["skarn", "holm light"]
    assert index.resolve("holm light", every) == [HOLM.id]
    assert index.resolve("holm light", lambda ids: np.zeros(len(ids), bool)) == []


def test_a_name_of_many_names_nobody() -> None:
    """A title such as `Notes` says nothing."""
    index = index_of(*(Entry(number, "Notes", "x") for number in range(MOST_NAMED + 1)))
    assert index.resolve("notes", every) == []
    assert len(index.resolve("notes", lambda ids: ids > 0)) == MOST_NAMED


def test_a_heading_names_its_part_and_a_title_the_first() -> None:
    """Later parts of a document are not called by its title."""
    index = index_of(
        Entry(1, "Lighthouses", "x", "", True),
        Entry(2, "Lighthouses", "y", "Lights > Skarn Rock", False),
    )
    assert index.resolve("lighthouses", every) == [1]
    assert index.resolve("skarn rock", every) == [2]
