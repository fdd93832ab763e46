"""Search the evidence for the one or two sentences that carry a sentence of an answer, by words weighted by rarity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from math import hypot
from operator import mul
from typing import Literal, TypeAlias

from batos.gate import thresholds
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex
from batos.gate.rivals import least_lead
from batos.gate.texts.stems import Stem, is_number

#: The reason that nothing carries a sentence: its words stand in no sentence, too few of the question's stand beside
#: them, another of the same kind stands nearer to the question, a number is not there, or a quotation is not verbatim.
Missing: TypeAlias = Literal["words", "question", "rival", "number", "quotation"]

#: The vector of a sentence, and those of the evidence's sentences in the order of `EvidenceIndex.sentences`.
Meaning: TypeAlias = tuple[Sequence[float], Sequence[Sequence[float]]]

#: Numbers of fewer digits are also counts of what a text lists, and need not stand in it.
_DIGITS = 2
#: Sentences among which the second of two is looked for that carry one together.
_PAIR_TRIED = 12


@dataclass(frozen=True, slots=True)
class Claim:
    """The words of a sentence that are not the question's, the question's that belong to it, and its new phrases."""

    new: frozenset[str]
    context: frozenset[str]
    phrases: tuple[str, ...]

    @property
    def numbers(self) -> frozenset[str]:
        """Return the new numbers of two digits and more."""
        return frozenset(stem for stem in self.new if is_number(stem) and len(stem) >= _DIGITS)


@dataclass(frozen=True, slots=True)
class Search:
    """The carriers of a claim; without any, the nearest sentence and the reason that it does not carry."""

    carriers: tuple[Citation, ...]
    nearest: Citation | None
    missing: Missing | None


@dataclass(frozen=True, slots=True)
class _Match:
    """A sentence of the evidence with the weights of the claim's words that it has."""

    sentence: int
    rank: float
    new: float
    context: float


def make_claim(
    index: EvidenceIndex, text: str, stems: Sequence[Stem], asked: Set[str], *, first: bool, exempt: Set[str]
) -> Claim:
    """Return the claim that stems of a text make beside those of the question; the `exempt` are left out.

    The first sentence is completed by the question where it has few of its words: `In 1961.` means that the lamp was
    automated then. A sentence that says only words of the question claims all of its own.
    """
    said = [each for each in stems if each.stem not in exempt]
    own = frozenset(each.stem for each in said)
    new = own - asked
    completed = first and index.weigh(own & asked) < thresholds.COMPLETE * index.weigh(asked)
    if not new:
        return Claim(own, frozenset(asked - own) if completed else frozenset(), tuple(_phrases(text, said, own)))
    context = frozenset(asked - new) if completed else own & asked
    return Claim(new, context, tuple(_phrases(text, said, new)))


def _phrases(text: str, said: Sequence[Stem], new: Set[str]) -> Iterator[str]:
    """Yield the rows of new words of a sentence, with the small words between them."""
    for is_new, row in groupby(said, key=lambda each: each.stem in new):
        if is_new:
            first, *others = row
            yield text[first.start : (others or [first])[-1].end]


def find_parts(index: EvidenceIndex, claim: Claim) -> tuple[Citation, ...]:
    """Return the one or two sentences of documents that have half of a claim, and all else that carrying asks for."""
    return _Searcher(index, claim, thresholds.PART_SHARE).search(conversation=False).carriers


def find_carriers(index: EvidenceIndex, claim: Claim, meaning: Meaning | None = None) -> Search:
    """Search documents first, then the conversation, for one or two sentences that carry a claim.

    `meaning` is the vector of the claim's sentence and those of the evidence's sentences, where words are missing.
    """
    searcher = _Searcher(index, claim, thresholds.NEW_SHARE)
    search = searcher.search(conversation=False)
    if search.missing == "words" and meaning is not None:
        search = searcher.search_meaning(*meaning) or search
    if search.missing and index.sentences and index.sentences[-1].document == CONVERSATION:
        said = searcher.search(conversation=True)
        return said if said.carriers or search.nearest is None else search
    return search


class _Searcher:
    def __init__(self, index: EvidenceIndex, claim: Claim, share: float) -> None:
        self._index, self._claim, self._share = index, claim, share
        self._new, self._context = index.hits(claim.new), index.context_hits(claim.context)
        self._of_document = index.document_hits(claim.context)
        self._new_total, self._context_total = index.weigh(claim.new), index.weigh(claim.context)
        self._best_context = max(self._context.values(), default=0.0)

    def search(self, *, conversation: bool) -> Search:
        """Search documents or the conversation by words."""
        matches = sorted(self._matches(conversation), key=lambda match: (-match.rank, match.sentence))
        if not matches:
            return Search((), None, "words")
        first = matches[0]
        missing = self._missing(first)
        if missing is None:
            return Search((self._carrier(first.sentence),), None, None)
        joins = len(self._claim.new) >= thresholds.PAIR_WORDS or len(self._claim.numbers) > 1
        if missing in {"words", "number"} and joins:
            for second in matches[1:_PAIR_TRIED]:
                if self._carry(first, second):
                    return Search((self._carrier(first.sentence), self._carrier(second.sentence)), None, None)
        return Search((), self._carrier(first.sentence), missing)

    def search_meaning(self, vector: Sequence[float], vectors: Sequence[Sequence[float]]) -> Search | None:
        """Return the document's sentence that is most alike, if it is alike enough and has the claim's numbers."""
        likeness = [
            (cosine(vector, other), -at)
            for at, other in enumerate(vectors[: len(self._index.sentences)])
            if self._index.sentences[at].document != CONVERSATION
        ]
        best, at = max(likeness, default=(0.0, 0))
        if best < thresholds.ALIKE or not self._claim.numbers <= self._index.stems[-at] or not self._leads(-at):
            return None
        return Search((self._index.sentences[-at].with_score(best),), None, None)

    def _matches(self, conversation: bool) -> Iterator[_Match]:
        index = self._index
        for at in self._new.keys() | self._context.keys():
            if (index.sentences[at].document == CONVERSATION) == conversation:
                new, context = self._new.get(at, 0.0), self._context.get(at, 0.0)
                beside = thresholds.DOCUMENT_PART * self._of_document.get(index.document_of[at], 0.0)
                rank = context + thresholds.NEW_WEIGHT * new + beside - thresholds.LENGTH_COST * len(index.stems[at])
                yield _Match(at, rank, new, context)

    def _missing(self, match: _Match) -> Missing | None:
        """Return the reason that a sentence does not carry the claim alone."""
        if not self._claim.numbers <= self._index.stems[match.sentence]:
            return "number"
        if match.new < self._share * self._new_total:
            return "words"
        if not self._beside(match):
            return "question"
        return None if self._leads(match.sentence) else "rival"

    def _beside(self, match: _Match) -> bool:
        """Test if enough of the question's words stand in a sentence."""
        least = max(thresholds.QUESTION_SHARE * self._context_total, thresholds.RELATIVE_SHARE * self._best_context)
        return match.context >= least

    def _leads(self, sentence: int) -> bool:
        return least_lead(self._index, sentence, self._claim.phrases, self._claim.context) >= thresholds.LEAD

    def _carry(self, first: _Match, second: _Match) -> bool:
        """Test if two sentences carry the claim together, each with a part of it."""
        index, claim = self._index, self._claim
        least = thresholds.PAIR_SHARE * self._new_total
        neighbours = abs(first.sentence - second.sentence) == 1 and (
            index.document_of[first.sentence] == index.document_of[second.sentence]
        )
        beside = self._beside(first) + self._beside(second)
        if min(first.new, second.new) < least or beside + neighbours < len((first, second)):
            return False
        both = index.stems[first.sentence] | index.stems[second.sentence]
        enough = index.weigh(claim.new & both) >= self._share * self._new_total
        more = index.weigh(claim.new & both) - first.new >= least
        return (
            enough and more and claim.numbers <= both and self._leads(first.sentence) and self._leads(second.sentence)
        )

    def _carrier(self, sentence: int) -> Citation:
        has = self._context.get(sentence, 0.0) + thresholds.NEW_WEIGHT * self._new.get(sentence, 0.0)
        total = self._context_total + thresholds.NEW_WEIGHT * self._new_total
        return self._index.sentences[sentence].with_score(has / total if total else 0.0)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the likeness of two vectors, from -1 to 1; 0 where one has no length."""
    lengths = hypot(*one) * hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
