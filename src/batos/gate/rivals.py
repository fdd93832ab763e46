"""Compare what an answer names with its rivals: other dates, numbers and names in the same sentence of the evidence.

Where a sentence says that one thing happened in 1914 and another in 1918, both years stand in it, and words alone carry
either. The one that answers stands nearer to the words of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from batos.gate import thresholds
from batos.gate.evidence_index import EvidenceIndex
from batos.gate.texts import languages
from batos.gate.texts.stems import Stem, is_number, placed_stems, stems
from batos.memory.terms import words

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
