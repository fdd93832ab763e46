"""Search the evidence for the sentences that carry a sentence of an answer, and for rivals of what that names.

Where a sentence says that one thing happened in 1914 and another in 1918, both years stand in it, and words alone carry
either. The one that answers stands nearer to the words of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from math import hypot
from operator import mul
from typing import Literal, TypeAlias

from batos.gate import languages, thresholds
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex
from batos.gate.languages import Stem, is_number, placed_stems, stems
from batos.memory.segmentation import words

Kind: TypeAlias = Literal["date", "number", "name"]

#: The lead of a phrase that has no rival: any lead of at least 1 does.
NO_RIVAL = 2.0
_CLAUSE = re.compile(r"[,;:()—–、，；：،؛（）]")

_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_MONTH = re.compile(
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december|januar|februar|märz|mai|juni"
    r"|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero"
    r"|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b|年|月",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d[\d,.–-]*\d|\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|billion|half"
    r"|first|third|one|second)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_JOINS = frozenset({"of", "the", "de", "von", "van", "and", "der", "la", "di", "da"})


def kind_of(text: str, language: str | None) -> Kind | None:
    """Return if a text names a date, a number or a name; None if it does not. German nouns are no names."""
    if _YEAR.search(text) or _MONTH.search(text):
        return "date"
    if _NUMBER.search(text) or any(is_number(each.stem) for each in placed_stems(text, language)):
        return "number"
    return "name" if language != "German" and any(word[0][0].isupper() for word in _WORD.finditer(text)) else None


def spans_of(text: str, kind: Kind, language: str | None) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of everything of a kind in a text; of dates the years."""
    if kind != "name":
        yield from (found.span() for found in (_YEAR if kind == "date" else _NUMBER).finditer(text))
        return
    for start, end in _name_spans(text):
        alone = start == 0 and " " not in text[start:end]
        if not alone or next(iter(words(text[start:end])), "") not in languages.small_words(language):
            yield start, end


def _name_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield rows of capitalised words, with small words such as `of` within them."""
    row: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        capital = word[0][0].isupper()
        follows = bool(row) and text[row[-1].end() : word.start()] in {" ", ". ", "\n"}
        if follows and (capital or word[0] in _JOINS):
            row.append(word)
            continue
        yield from _whole(row)
        row = [word] if capital else []
    yield from _whole(row)


def _whole(row: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    while row and not row[-1][0][0].isupper():
        row.pop()
    if row:
        yield row[0].start(), row[-1].end()


def nearness(
    index: EvidenceIndex, text: str, said: Sequence[Stem], span: tuple[int, int], context: Set[str]
) -> float | None:
    """Return how near a span of a sentence stands to words: the sum of their weights, less by distance.

    `said` are the stems of the sentence's text. Returns None if no stem stands in the span.
    """
    inside = [place for place, each in enumerate(said) if span[0] <= each.start < span[1]]
    if not inside:
        return None
    low, high = inside[0], inside[-1]
    best: dict[str, float] = {}
    for place, each in enumerate(said):
        if each.stem not in context or low <= place <= high:
            continue
        before = place < low
        gap = text[each.start : span[0]] if before else text[span[1] : each.start]
        far = (low - place if before else place - high) + thresholds.CLAUSE_DISTANCE * len(_CLAUSE.findall(gap))
        best[each.stem] = max(best.get(each.stem, 0.0), index.weight(each.stem) / (1 + far / thresholds.SCALE))
    return sum(value for _, value in sorted(best.items()))


@dataclass(frozen=True, slots=True)
class _Scene:
    """A sentence of the evidence with its stems, in which phrases are compared."""

    index: EvidenceIndex
    text: str
    language: str | None
    said: Sequence[Stem]

    def lead(self, place: tuple[int, int], kind: Kind, context: Set[str], named: Set[str]) -> float:
        own = nearness(self.index, self.text, self.said, place, context)
        rivals = [0.0]
        for start, end in spans_of(self.text, kind, self.language):
            inside = {each.stem for each in self.said if start <= each.start < end}
            apart = end <= place[0] or place[1] <= start
            if apart and inside and not inside & (context | named):
                rivals.append(nearness(self.index, self.text, self.said, (start, end), context) or 0.0)
        nearest = max(rivals)
        return NO_RIVAL if own is None or not nearest else own / nearest


def least_lead(index: EvidenceIndex, sentence: int, phrases: Sequence[str], context: Set[str]) -> float:
    """Return how much nearer the phrases of an answer stand to words than their nearest rivals, of the least one.

    1 is as near, less than 1 is farther. A phrase that does not stand in the sentence as it is, is compared by the
    numbers and names in it. Returns NO_RIVAL where there is none, and where nothing can be compared.
    """
    text, language = index.sentences[sentence].quote, index.language_of(sentence)
    scene = _Scene(index, text, language, list(placed_stems(text, language)))
    named = frozenset().union(*(stems(phrase, language) for phrase in phrases))
    leads = [NO_RIVAL]
    for phrase in phrases:
        kind = kind_of(phrase, language)
        place = _place(phrase, text)
        if kind is not None and place is not None:
            leads.append(scene.lead(place, kind, context, named))
        elif kind is not None:
            for start, end in spans_of(phrase, kind, language):
                place = _place(phrase[start:end], text)
                if place is not None:
                    rest = named - stems(phrase[start:end], language)
                    leads.append(scene.lead(place, kind, context | rest, named))
    return min(leads)


def _place(phrase: str, text: str) -> tuple[int, int] | None:
    found = re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE)
    return found.span() if found else None


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
