"""The text index: what every index does, and the ranking of the reference."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.memory.indexes.conformance import Among, Hit, Index, IndexConformance, each_of, entry_lists, hits_of, texts
from zope.index.text.lexicon import Lexicon
from zope.index.text.okapiindex import OkapiIndex, inverse_doc_frequency

from batos.memory.indexes import postings
from batos.memory.indexes.postings import Entry, number_bytes, pack
from batos.memory.indexes.text import KIND, TextIndex, best_of, build
from batos.memory.segmentation import stems
from batos.memory.words_by_language import COMMON_STEMS, searched_stems, wanted_words
from batos.protocol.errors import IndexDamaged


class TestTextConformance(IndexConformance):
    """The laws that every index keeps."""

    def make(self) -> Index:
        return TextIndex()

    def build(self, entries: Iterable[Entry]) -> bytes:
        return build(entries)

    def merge(self, segments: Sequence[bytes], gone: Container[int]) -> bytes:
        return postings.merge(KIND, segments, gone)

    def ask(self, index: Index, query: str, most: int = 10, among: Among = None) -> list[Hit]:
        assert isinstance(index, TextIndex)
        return hits_of(best_of(*index.score(query, each_of(among)), most))


def index_of(*entries: Entry) -> TextIndex:
    index = TextIndex()
    index.add(0, build(entries))
    return index


def search(index: TextIndex, query: str, most: int) -> list[int]:
    """Return the ids of what an index finds, the best first."""
    return list(best_of(*index.score(query), most))


class _Stems:
    """Our terms as an element of zope.index's pipeline."""

    def process(self, texts_: Iterable[str]) -> list[str]:
        return [stem for text in texts_ for stem in stems(text)]


@settings(max_examples=60)
@given(entry_lists, texts)
def test_entries_are_ranked_as_by_okapi(entries: list[Entry], query: str) -> None:
    """Each entry has the sum of zope.index's scores of the terms, with the rarity that `ranking` takes."""
    index = index_of(*entries)
    words = wanted_words(query)
    held = {stem for entry in entries for stem in stems(f"{entry.title} {entry.text}")}
    assume(all(words.stem_of.get(stem, stem) == stem for stem in held))  # other forms count for less
    reference, rarities = OkapiIndex(Lexicon(_Stems())), index.rarity(words)
    for entry in entries:
        reference.index_doc(entry.id, f"{entry.title} {entry.text}")
    expected: dict[int, float] = {}
    matched: set[int] = set()
    asked = words.forms.keys()
    for stem in asked:
        found = reference.search(stem)
        if stem not in COMMON_STEMS or asked <= COMMON_STEMS:
            matched.update(found or {})
        for id_, score in dict(found or {}).items():
            rarity = rarities[stem] / inverse_doc_frequency(len(found or {}), reference.documentCount())
            expected[id_] = expected.get(id_, 0.0) + score * rarity
    assert best_of(*index.score(query), 100) == pytest.approx({id_: expected[id_] for id_ in matched}, rel=1e-3)


def test_common_words_alone_find_nothing_unless_there_are_no_others() -> None:
    """`the lamp` finds no entry without a lamp, and `to be or not` finds what has these words."""
    index = index_of(Entry(1, "", "The lamp burns."), Entry(2, "", "The rope is not here."))
    assert search(index, "the lamp", 9) == [1]
    assert search(index, "the", 9) == [1, 2]
    assert search(index, "the sea", 9) == []


def test_words_of_the_title_count() -> None:
    """An entry is found by a word that only its title has."""
    index = index_of(Entry(1, "Clockwork", "Wound at night."), Entry(2, "", "Wound by day."))
    assert search(index, "clockwork", 5) == [1]


def test_endings_do_not_count_and_numbers_are_whole() -> None:
    """Forms of a long word find each other; two long numbers with the same beginning do not."""
    index = index_of(Entry(1, "", "the lighthouses 1848121"), Entry(2, "", "a gull 1848122"))
    assert search(index, "Lighthouse", 5) == [1]
    assert search(index, "1848121", 5) == [1]


def test_forms_of_a_short_word_find_each_other_and_count_for_less() -> None:
    """`Who leads it?` finds `lead`, `renewed` `renew`, and what has the very word comes first."""
    index = index_of(Entry(1, "", "the lead of atlas"), Entry(2, "", "to renew the pass"), Entry(3, "", "Häuser alt"))
    assert search(index, "leads", 5) == [1]
    assert search(index, "renewed", 5) == [2]
    assert search(index, "das Haus", 5) == [3]
    index.add(1, build([Entry(4, "", "ein Haus da"), Entry(5, "", "Häusern gut")]))
    assert search(index, "Haus", 5) == [4, 3, 5]


def test_an_id_in_two_segments_is_found_once() -> None:
    """While a merged segment stands beside those that it replaces, each entry is found once."""
    index = TextIndex()
    index.add("one", build([Entry(1, "", "lamp")]))
    index.add("all", build([Entry(1, "", "lamp"), Entry(2, "", "lamp oil")]))
    assert search(index, "lamp", 5) == [1, 2]


def test_the_last_segment_tells_what_an_id_is() -> None:
    """Of an id in several segments a merge keeps what the last one holds."""
    merged = postings.merge(KIND, [build([Entry(1, "", "lamp")]), build([Entry(1, "", "gull")])], ())
    assert merged == build([Entry(1, "", "gull")])


@pytest.mark.parametrize(
    ("ids", "lengths", "words", "sizes", "steps"),
    [
        ([2, 1], [1, 1], ["a"], [2], [0, 1]),
        ([1, 2], [1], ["a"], [2], [0, 1]),
        ([1, 2], [1, 1], ["b", "a"], [1, 1], [0, 1]),
        ([1, 2], [1, 1], ["a", "b"], [2], [0, 1]),
        ([1, 2], [1, 1], ["a"], [2], [0, 2]),
        ([1, 2], [1, 1], ["a"], [2], [1, 0]),
        ([1, 2], [1, 1], ["a"], [3], [0, 1]),
        ([1, 2], [1, 1], ["a", "b"], [2, 0], [0, 1]),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    ids: list[int], lengths: list[int], words: list[str], sizes: list[int], steps: list[int]
) -> None:
    """A segment with a right checksum and parts that do not fit each other is refused, and does not crash a search."""
    sections = (
        number_bytes("<i8", np.array(ids, np.int64)),
        number_bytes("<u4", np.array(lengths, np.int64)),
        "\n".join(words).encode(),
        number_bytes("<u4", np.array(sizes, np.int64)),
        number_bytes("<u4", np.array(steps, np.int64)),
        number_bytes("<u2", np.array([1] * len(steps), np.int64)),
    )
    with pytest.raises(IndexDamaged):
        TextIndex().add(0, pack(KIND, sections))


@given(entry_lists, texts, st.integers(0, 40))
def test_entries_that_hold_a_name(entries: list[Entry], name: str, cut: int) -> None:
    """All that have each of its words, over several segments, in order."""
    index = TextIndex()
    for key, some in enumerate((entries[:cut], entries[cut:])):
        index.add(key, build(some))
    last = {entry.id: entry for part in (entries[:cut], entries[cut:]) for entry in part}
    assume(len(last) == len(entries))
    wanted = {*stems(name)}
    held = {
        entry.id: {*searched_stems(f"{entry.title}\n{entry.beside}\n{entry.heading}\n{entry.text}")}
        for entry in entries
    }
    expected = [id_ for id_ in sorted(held) if wanted and wanted <= held[id_]]
    assert index.holding(name).tolist() == expected
    assert index.holding(name, lambda ids: ids % 2 == 0).tolist() == [each for each in expected if each % 2 == 0]
