"""Joins what words and vectors find, and follows the names in the best parts to the parts that have them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.memory.indexes.links import MOST_NAMED, LinkIndex
from batos.memory.indexes.postings import Numbers
from batos.memory.indexes.text import TextIndex
from batos.memory.mentions import Mention, key_of, mentions, names_in, names_of
from batos.memory.segmentation import sentence_spans, stems
from batos.memory.words_by_language import WantedWords
from batos.objects.prototype import UvmObject, own_slots

#: A name that more than one in so many parts says joins none of them.
FEW: Final = 10


class ChunksWithin:
    """The chunks that some spans hold, by their numbers; uncommitted ones count from the end."""

    def __init__(self, spans: tuple[Numbers, Numbers], others: Sequence[bool]) -> None:
        firsts, lasts = spans
        self._held: NDArray[np.bool_] = np.zeros((int(lasts.max()) if len(lasts) else 0) + 1 + len(others), bool)
        room = len(self._held) + 1
        begun = np.cumsum(np.bincount(firsts, minlength=room))
        self._held |= (begun > np.cumsum(np.bincount(lasts + 1, minlength=room)))[:-1]
        for place, held in enumerate(others, start=1):
            self._held[-place] = held

    @property
    def count(self) -> int:
        """Return the number of chunks."""
        return int(np.count_nonzero(self._held))

    def mask(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Tell of each of some numbers if it is within."""
        known = numbers < len(self._held)
        return self._held[numbers] if known.all() else self._held[np.where(known, numbers, 0)] & known


class NamesWithin:
    """The names of chunks within reach, for one search: a name that only others have is none."""

    def __init__(
        self, index: LinkIndex, words: TextIndex, within: ChunksWithin, document_of: Callable[[int], UvmObject | None]
    ) -> None:
        self._index = index
        self._within = within
        self._document_of = document_of
        self._is_named = cache(partial(index.names_any, among=within.mask))
        self._say = cache(partial(words.holding, among=within.mask))
        self._most_sharing = min(MOST_NAMED, within.count // FEW)

    def __contains__(self, name: object) -> bool:
        return self._is_named(str(name))

    def mentions(self, text: str) -> Sequence[Mention]:
        """Return the names that a text mentions."""
        return list(mentions(text, self))

    def resolve(self, name: str) -> Sequence[int]:
        """Return the parts of a name."""
        return self._index.resolve(name, self._within.mask)

    def beside(self, name: str, part: int) -> Sequence[int]:
        """Return the parts of a name but this one, and those that have it for the title of the same document."""
        others = [each for each in self.resolve(name) if each != part]
        own = self._document_of(part) if others else None
        if own is None or key_of(own_slots(own)["title"]) != name:
            return others
        return [each for each in others if self._document_of(each) is not own]

    def sharing(self, name: str, part: int) -> Sequence[int]:
        """Return the parts of other documents that say a name; none where too many do."""
        own, ids = self._document_of(part), self._say(name)
        if own is not None and part > 0:
            first, last = own_slots(own)["chunks"]
            ids = ids[(ids < first) | (ids > last)]
        others = [] if len(ids) > 2 * self._most_sharing else ids.tolist()
        if part < 0:  # uncommitted: its document has no range
            others = [each for each in others if each > 0 or self._document_of(each) is not own]
        return others if len(others) <= self._most_sharing else ()

    def count(self, name: str) -> int:
        """Return the number of parts that say a name."""
        return len(self._say(name))

    def title(self, part: int) -> str:
        """Return the title of a part's document as names are compared, "" for none that tells anything."""
        own = self._document_of(part)
        title = "" if own is None else own_slots(own)["title"]
        return key if (key := key_of(title)) in names_of(title, "", "", True) else ""


#: A recall uses words and vectors joined with the links between parts, the two without links, or one of them.
RecallMode: TypeAlias = Literal["linked", "hybrid", "text", "vectors"]

#: The share of words beside vectors (decision 0061 has the measurements of all of these).
WORDS: Final = 0.5
#: The gain of a part that the question names.
NAMED: Final = 0.8
#: The best parts whose names are followed.
SEEDS: Final = 7
#: The gain of a part that a best part names; the least of it that does not hang on the sentence that names it, and the
#: share of it that hangs on how near the part itself is to the question.
LINKED, UNSAID, NEAR = 1.0, 0.35, 0.4
#: The gain of a part that says a name that a best part says too, and what stands for the share of the question where
#: that name is the best part's own title (decision 0061).
SHARED, TITLE = 0.5, 0.3
#: The best parts whose names are followed to parts that only say them too.
SHARERS: Final = 4
#: A name that more parts than this say leads less far.
OFTEN: Final = 16


@dataclass(frozen=True, slots=True)
class Link:
    """The reason why a part was reached: another part mentions its name, or one that both say, in this sentence.

    Without a sentence it is the part that was reached that says the name of the other.
    """

    chunk: int
    name: str
    sentence: str


class RankedChunk(NamedTuple):
    """A part that was found: its score, the link that led to it, and whether the question names it."""

    id: int
    score: float
    link: Link | None = None
    is_named: bool = False


#: A name that leads somewhere: how much it counts for each part that it leads to, the link, and these parts.
_Leading: TypeAlias = tuple[float, Link, Sequence[int]]


@dataclass(frozen=True, slots=True)
class SaidWords:
    """The words of a question, and by their stems how rare each is."""

    rarity: Mapping[str, float]
    words: WantedWords

    def share(self, held: Collection[str]) -> float:
        """Return the share of some of the words in the weight of all; `held` are their stems."""
        return sum(self.rarity.get(stem, 0.0) for stem in held) / (sum(self.rarity.values()) or 1.0)

    def has_all(self, name: str) -> bool:
        """Test if the question has every word of a name."""
        return all(stem in self.words.stem_of for stem in stems(name))

    def telling(self) -> SaidWords:
        """Return the same without words that only ask or point, unless there are no others."""
        telling = {stem: weight for stem, weight in self.rarity.items() if stem not in self.words.asking}
        return SaidWords(telling or self.rarity, self.words)


#: A question without a word.
NOTHING_SAID: Final = SaidWords({}, WantedWords({}))


@dataclass(frozen=True, slots=True)
class Legs:
    """The scores of parts by words and by vectors, and the words of the question.

    `near` returns the cosine of any part, also of one that neither found; None: there are no vectors.
    """

    words: Mapping[int, float]
    cosines: Mapping[int, float]
    said: SaidWords
    near: Callable[[Sequence[int]], Mapping[int, float]] | None = None


def fuse(legs: Legs, named: Iterable[int] = ()) -> dict[int, float]:
    """Return the joined score of each part: both legs by their best, and what it gains if the question names it.

    The best score is 1. Of a single leg that one counts.
    """
    share = 1.0 if not legs.cosines else 0.0 if not legs.words else WORDS
    scores: dict[int, float] = {}
    for leg, weight in ((legs.words, share), (legs.cosines, 1 - share)):
        best = max(leg.values(), default=0.0)
        for id_, score in leg.items():
            if best > 0:
                scores[id_] = scores.get(id_, 0.0) + weight * max(0.0, score) / best
    for id_ in named:
        scores[id_] = scores.get(id_, 0.0) + NAMED
    most = max(scores.values(), default=0.0) or 1.0
    return {id_: score / most for id_, score in scores.items()}


def follow(
    scores: Mapping[int, float],
    legs: Legs,
    named: Container[int],
    text_of: Callable[[int], str | None],
    names: NamesWithin,
) -> dict[int, tuple[float, Link]]:
    """Return what parts gain by links from the best parts, each by the best link to it.

    A name leads to none that the question names itself (`named`). A link counts as much as the part that it comes from,
    as the share of the question that its sentence has, by rarity, and as the part that it leads to is near to the
    question. A name of several parts counts less for each.
    """
    found: list[tuple[float, int, Link]] = []
    seeds = heapq.nsmallest(SEEDS, ((-score, id_) for id_, score in scores.items()))
    for place, (_, seed) in enumerate(seeds):
        text = text_of(seed) or ""
        links = [*_owner_links(seed, text, legs.said, named, names)]
        if place < SHARERS:
            links += _shared_links(seed, text, legs.said, names)
        found += [(scores[seed] * weight, id_, link) for weight, link, ids in links for id_ in ids]
    nearness = _nearness(legs, {id_ for _, id_, _ in found})
    best: dict[int, tuple[float, Link]] = {}
    for gain, id_, link in found:
        gain *= 1 - NEAR + NEAR * nearness.get(id_, 0.0)
        if gain > best.get(id_, (0.0, link))[0]:
            best[id_] = gain, link
    return best


def recall(
    legs: Legs, mode: RecallMode, named: Iterable[int], text_of: Callable[[int], str | None], names: NamesWithin
) -> list[RankedChunk]:
    """Return the parts that were found, the best first and ties by number."""
    named = set(named) if mode == "linked" else set()
    scores = fuse(legs, named)
    gained = follow(scores, legs, named, text_of, names) if mode == "linked" else {}
    for id_, (gain, _) in gained.items():
        scores[id_] = scores.get(id_, 0.0) + gain
    ranked = sorted((-score, id_) for id_, score in scores.items())
    return [RankedChunk(id_, -score, gained[id_][1] if id_ in gained else None, id_ in named) for score, id_ in ranked]


def _owner_links(
    part: int, text: str, question: SaidWords, named: Container[int], names: NamesWithin
) -> Iterator[_Leading]:
    """Yield the names of other parts that a part says."""
    for sentence in _sentences(text):
        said = 0.0
        for name in dict.fromkeys(mention.name for mention in names.mentions(sentence)):
            if ids := [each for each in names.beside(name, part) if each not in named]:
                said = said or UNSAID + question.share(question.words.find_in(sentence))
                often = max(1.0, names.count(name) / OFTEN)
                yield LINKED * said / math.sqrt(len(ids) * often), Link(part, name, sentence), ids


def _shared_links(part: int, text: str, question: SaidWords, names: NamesWithin) -> Iterator[_Leading]:
    """Yield the names that a part says and a few others say too: such as no part has, and its own title."""
    for sentence in _sentences(text):
        said = 0.0
        for name in names_in(sentence):
            ids = () if question.has_all(name) or names.resolve(name) else names.sharing(name, part)
            if ids:
                said = said or UNSAID + question.share(question.words.find_in(sentence))
                yield SHARED * said / len(ids), Link(part, name, sentence), ids
    title = names.title(part)
    if ids := names.sharing(title, part) if title else ():
        yield SHARED * (UNSAID + TITLE) / len(ids), Link(part, title, ""), ids


def _sentences(text: str) -> Iterator[str]:
    return (text[slice(*span)] for span in sentence_spans(text))


def _nearness(legs: Legs, ids: set[int]) -> Mapping[int, float]:
    """Return how near parts are to the question, as shares of the nearest: by vectors, else by words."""
    if legs.near is None:
        best = max(legs.words.values(), default=0.0) or 1.0
        return {id_: legs.words.get(id_, 0.0) / best for id_ in ids}
    best = max(legs.cosines.values(), default=0.0) or 1.0
    return {id_: max(0.0, cosine) / best for id_, cosine in legs.near(sorted(ids)).items()}
