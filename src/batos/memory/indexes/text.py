"""Find entries by their words (BM25): postings in immutable segments, and the index that a process makes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.memory.indexes import postings
from batos.memory.indexes.postings import Among, Entry, Numbers, Postings, word_of
from batos.memory.segmentation import stems
from batos.memory.words_by_language import COMMON_STEMS, WantedWords, searched_stems, wanted_words

#: Entries that are taken for granted beside those of an index, and the shares of them that hold a common word, and any
#: other one (decision 0061).
OTHERS, COMMONLY, RARELY = 50, 0.3, 0.005
KIND: Final = b"text"
#: BM25: how soon a term's repetitions stop to count, and how much the length of an entry counts.
K1, B = 1.2, 0.75
#: The weight of another form of a word beside the one of the question, which may be a name.
OTHER_FORM: Final = 0.5
_MOST_RUNS: Final = 1024
#: Of so many hits one is looked at first, where the best of many are looked for.
SAMPLED: Final = 16

#: Each word and its other forms as postings have them, and its weight.
WeightedTerms: TypeAlias = Sequence[tuple[bytes, tuple[bytes, ...], float]]


def build(entries: Iterable[Entry]) -> bytes:
    """Return a segment of entries; the terms of a title and of what stands beside count as those of the text.

    Of one id the last entry counts. The same entries give the same bytes in any order.
    """
    texts = {entry.id: "\n".join((entry.title, entry.beside, entry.heading, entry.text)) for entry in entries}
    return postings.build(KIND, {id_: Counter(searched_stems(text)) for id_, text in texts.items()})


class _IndexedSegment:
    """A segment in the index, and the runs that were looked for lately: a search asks for each several times."""

    def __init__(self, postings_: Postings) -> None:
        self.postings = postings_
        self.run = lru_cache(_MOST_RUNS)(postings_.run)
        self.runs_of = lru_cache(_MOST_RUNS)(postings_.runs_of)

    def holding(self, words: Iterable[bytes]) -> Numbers:
        """Return the ids of the entries that hold all of some words, one word at least."""
        runs = []
        for word in words:
            begin, end = self.run(word)
            if begin == end:
                return self.postings.ids[:0]
            runs.append(self.postings.places[begin:end])
        places, *others = sorted(runs, key=len)
        for run in others:
            places = places[run[np.minimum(np.searchsorted(run, places), len(run) - 1)] == places]
        return self.postings.ids[places]

    def count(self, forms: tuple[bytes, ...]) -> int:
        """Return the number of entries that hold one of some words."""
        runs = self.runs_of(forms)
        if len(runs) == 1:
            return runs[0][1] - runs[0][0]
        held: NDArray[np.bool_] = np.zeros(len(self.postings.ids), bool)
        for begin, end in runs:
            held[self.postings.places[begin:end]] = True
        return int(np.count_nonzero(held))


class TextIndex:
    """The segments of a memory by their keys, searched as one. An id stands in one segment."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, _IndexedSegment] = {}
        self._count = self._length = 0
        #: Rarities that were asked for lately: a search asks for each twice.
        self._rarity = lru_cache(_MOST_RUNS)(self._rarity_of)

    def add(self, key: Hashable, segment: bytes) -> None:
        """Add a segment under a key, in the place of what had that key. Damaged bytes raise IndexDamaged."""
        found = postings.read_segment(KIND, segment)
        self.drop(key)
        self._parts[key] = _IndexedSegment(found)
        self._count += len(found.ids)
        self._length += int(found.lengths.sum())

    def drop(self, key: Hashable) -> None:
        """Leave out the segment of a key; an unknown key is no fault."""
        part = self._parts.pop(key, None)
        self._rarity.cache_clear()
        if part is not None:
            self._count -= len(part.postings.ids)
            self._length -= int(part.postings.lengths.sum())

    def ids(self) -> set[int]:
        """Return the ids of all entries."""
        return {id_ for part in self._parts.values() for id_ in part.postings.ids.tolist()}

    def segments(self) -> list[Postings]:
        """Return the segments."""
        return [part.postings for part in self._parts.values()]

    def rarity(self, words: WantedWords) -> dict[str, float]:
        """Return how much each word says, by its stem: much if few of the entries hold one of its forms.

        Some other entries are taken for granted, which hold it as often as language does: of a few entries alone one
        could not tell that "the" says less than a name that all of them hold.
        """
        return {stem: self._rarity(stem, *forms) for stem, forms in words.forms.items()}

    def _rarity_of(self, stem: str, *forms: str) -> float:
        """Return the rarity of a word as the question has it; of another form only where no entry has that."""
        counted = self._count_holding((word_of(stem),)) or self._count_holding(_others(stem, forms))
        holding = counted + OTHERS * (COMMONLY if stem in COMMON_STEMS else RARELY)
        return math.log(1 + (self._count + OTHERS - holding + 0.5) / (holding + 0.5))

    def _count_holding(self, forms: tuple[bytes, ...]) -> int:
        return sum(part.count(forms) for part in self._parts.values())

    def holding(self, text: str, among: Among | None = None) -> Numbers:
        """Return the ids of the entries that hold each word of a text, in order; none for a text without a word."""
        wanted = sorted({word_of(each) for each in stems(text)}, key=len, reverse=True)  # what is long is rare
        found = [part.holding(wanted) for part in self._parts.values()] if wanted else []
        ids = np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
        return ids if among is None else ids[among(ids)]

    def score(self, query: str, among: Among | None = None) -> tuple[Numbers, NDArray[np.float64]]:
        """Return the ids of all entries that match a query, in no order, and their scores.

        The query is natural language or anything else: nothing in it is a command. `among` takes an array of ids and
        tells of each if it may be found; the weight of a term is that among all entries all the same.

        An entry that has nothing but common words of the query does not match, unless the query has no others.
        """
        if not self._count:
            return np.empty(0, np.int64), np.empty(0)
        words = wanted_words(query)
        rarity = self.rarity(words)
        telling = rarity.keys() - COMMON_STEMS or rarity.keys()
        weighted = (
            _weigh({stem: forms for stem, forms in words.forms.items() if (stem in telling) is is_telling}, rarity)
            for is_telling in (True, False)
        )
        first, others = weighted
        average = self._length / self._count or 1.0
        found = [_match(part, first, others, average, among) for part in self._parts.values()]
        return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def _match(
    part: _IndexedSegment, telling: WeightedTerms, others: WeightedTerms, average: float, among: Among | None
) -> tuple[Numbers, NDArray[np.float64]]:
    """Return the ids and scores of the entries of a segment that hold a telling term and may be found."""
    lengths = K1 * (1 - B) + K1 * B / average * part.postings.lengths
    scores = np.zeros(len(part.postings.ids))
    _add_scores(scores, part, telling, lengths)
    found = np.flatnonzero(scores)
    if among is not None:
        found = found[among(part.postings.ids[found])]
    _add_scores(scores, part, others, lengths)
    return part.postings.ids[found], scores[found]


def _weigh(forms: Mapping[str, Sequence[str]], rarity: Mapping[str, float]) -> WeightedTerms:
    """Return words as postings have them and their weights, in one order, on which sums do not hang then."""
    order = sorted(forms, key=lambda stem: (-rarity[stem], stem))
    return [(word_of(stem), _others(stem, forms[stem]), rarity[stem]) for stem in order]


def _others(stem: str, forms: Iterable[str]) -> tuple[bytes, ...]:
    """Return the other forms of a word as postings have them."""
    return tuple(word_of(each) for each in sorted(forms) if each != stem)


def _add_scores(
    scores: NDArray[np.float64], part: _IndexedSegment, terms: WeightedTerms, lengths: NDArray[np.float64]
) -> None:
    for word, forms, weight in terms:
        own, others = part.run(word), part.runs_of(forms)
        if not others:
            places, times = part.postings.places[slice(*own)], part.postings.times[slice(*own)]
            scores[places] += weight * (K1 + 1) * (times / (times + lengths[places]))
            continue
        counted = np.zeros(len(scores))
        for share, (begin, end) in ((1.0, own), *((OTHER_FORM, run) for run in others)):
            counted[part.postings.places[begin:end]] += share * part.postings.times[begin:end]
        held = np.flatnonzero(counted)
        scores[held] += weight * (K1 + 1) * (counted[held] / (counted[held] + lengths[held]))


def _keep_best(ids: Numbers, scores: NDArray[np.float64], most: int) -> tuple[Numbers, NDArray[np.float64]]:
    """Return the `most` best of some hits, and all that score as the last of them does."""
    for step in (SAMPLED, 1):
        some = scores[::step]
        if len(some) > most:  # then as many of all are as good as the last of the best among these
            kept = scores >= np.partition(some, len(some) - most)[len(some) - most]
            ids, scores = ids[kept], scores[kept]
    return ids, scores


def best_of(ids: Numbers, scores: NDArray[np.float64], most: int) -> dict[int, float]:
    """Return the scores of the best, in order, ties by id; of an id that stands in several segments the best score."""
    if most < 1:
        return {}
    if len(ids) > most:
        # Twice as many, for ids that stand twice; and all that score as the last of them does.
        ids, scores = _keep_best(ids, scores, 2 * most)
    order = np.lexsort((ids, -scores))
    found: dict[int, float] = {}
    for id_, score in zip(ids[order].tolist(), scores[order].tolist(), strict=True):
        if len(found) == most:
            break
        found.setdefault(id_, score)
    return found
