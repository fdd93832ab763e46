"""Read the sentences of one answer beside evidence: each is carried, not carried, or not one to check."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from batos.gate import figures, languages, sums, thresholds
from batos.gate.carrying import Claim, Meaning, Missing, Search, find_carriers, find_parts, make_claim, spans_of
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex
from batos.gate.languages import Stem, is_number, placed_stems, stems
from batos.gate.uncheckable import Uncheckable, frame_length, manner

State: TypeAlias = Literal["carried", "not_carried", "not_checkable"]

#: Numbers of the shortest sum with its result.
_LEAST_OF_A_SUM = 3
#: Sentences that carry one of another language together.
_MOST_TRANSLATED = 2
#: Characters of a line before a sentence that are looked at.
_LINE = 400
#: Characters by which a quotation is found again in a sentence.
_SEEN = 40
#: A remark in square brackets, but no link and no index; and the number of a document in round ones.
_REMARK = re.compile(
    r"[^\S\n]?(?:(?<![\w\])])\[[^\[\]\n]{1,60}\](?![(\[])"
    r"|\((?:see )?(?:documents?|dokumente?|documentos?|documenti?|docs?|ids?|source)\.? ?#?\d{1,2}\))",
    re.IGNORECASE,
)
#: Forms that state nothing that evidence could carry.
_NOT_A_CLAIM = frozenset({"question", "heading", "greeting", "letter", "refusal", "offer", "nothing_found"})
#: A row of a table that parts its head from the rest, and data between brackets.
_RULE_ROW, _DATA = re.compile(r"[|\s:+-]+"), re.compile(r"[{\[].*[}\]]\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AttributedSentence:
    """A sentence of an answer with its place there.

    `carriers` has one or two sentences if it is carried. `nearest` is the nearest sentence of one that is not, if any
    shares a word with it, and `parts` are those that carry a clause of it. `reason` tells why it is not carried or not
    checked.
    """

    start: int
    end: int
    text: str
    state: State
    carriers: tuple[Citation, ...] = ()
    nearest: Citation | None = None
    parts: tuple[Citation, ...] = ()
    reason: Missing | Uncheckable | None = None


@dataclass(frozen=True, slots=True)
class AnswerFrame:
    """Says of a whole answer what the state of each of its sentences rests on."""

    language: str | None
    #: The answer is in a language or a script that no part of the evidence can be in.
    is_foreign: bool
    #: Its quotations that are not verbatim, each in one line.
    misquoted: tuple[str, ...]
    #: The numbers that it works out itself from others.
    sum_results: frozenset[str]


class AnswerReader:
    """An answer that is read sentence by sentence beside the evidence."""

    def __init__(
        self, answer: str, index: EvidenceIndex, frame: AnswerFrame, questions: Sequence[frozenset[str]]
    ) -> None:
        """Take the stems of the question, and of each sentence of it where it asks several things."""
        self._answer, self._index, self._questions = answer, index, questions
        self._frame, self._language, self._sum_results = frame, frame.language, frame.sum_results

    def line(self, start: int, end: int) -> str:
        """Return the line that a sentence stands in, up to its end; of a very long line its last part."""
        least = max(0, start - _LINE)
        return self._answer[max(least, self._answer.rfind("\n", least, start) + 1) : end]

    def read(self, start: int, end: int, *, first: bool, meaning: Meaning | None = None) -> AttributedSentence:
        """Return a sentence with its state. `first`: no sentence before it could be checked."""
        whole = self._answer[start:end]
        # A remark in brackets, such as [1] or [lamp.txt], is no part of what a sentence states.
        text = whole if whole.startswith("```") else _REMARK.sub("", whole).strip() or whole
        return replace(self._read_bare(start, end, text, first=first, meaning=meaning), text=whole)

    def _read_bare(
        self, start: int, end: int, text: str, *, first: bool, meaning: Meaning | None
    ) -> AttributedSentence:
        said = list(placed_stems(text, self._language))
        words = frozenset(each.stem for each in said)
        reason = self._skip_reason(text, words)
        if reason is not None:
            return AttributedSentence(start, end, text, "not_checkable", reason=reason)
        verbatim = self._verbatim(text)
        if verbatim:
            return AttributedSentence(start, end, text, "carried", verbatim)
        form = manner(text, self.line(start, end))
        if form in _NOT_A_CLAIM and not self._new_numbers(words):
            return AttributedSentence(start, end, text, "not_checkable", reason=form)
        bare = text[frame_length(text) :]
        if bare != text:
            said = list(placed_stems(bare, self._language))
        best = self._search(bare, said, first, meaning)
        if self._misquotes(text):
            nearest = best.nearest or next(iter(best.carriers), None)
            return AttributedSentence(start, end, text, "not_carried", nearest=nearest, reason="quotation")
        if best.missing is None:
            return AttributedSentence(start, end, text, "carried", best.carriers)
        if form is not None and not self._names_more(text, words):
            return AttributedSentence(start, end, text, "not_checkable", reason=form)
        if self._frame.is_foreign:
            return self._read_foreign(start, end, text, words)
        parts = self._parts(bare, said, first)
        return AttributedSentence(
            start, end, text, "not_carried", nearest=best.nearest, parts=parts, reason=best.missing
        )

    def _read_foreign(self, start: int, end: int, text: str, words: frozenset[str]) -> AttributedSentence:
        """Return a sentence in a language that no document is in: its numbers carry it."""
        carriers = self._values_of(words)
        if carriers:
            return AttributedSentence(start, end, text, "carried", carriers)
        return AttributedSentence(start, end, text, "not_checkable", reason="language")

    def _verbatim(self, text: str) -> tuple[Citation, ...]:
        """Return the sentence that a text copies, or those that the numbers of its sum stand in."""
        copy = self._index.copy_of(text)
        if copy is not None:
            return (self._index.sentences[copy],)
        return self._addends(text)

    def _addends(self, text: str) -> tuple[Citation, ...]:
        """Return the sentences that the numbers of a right sum stand in; none where one of these stands nowhere."""
        plain = figures.plain(text)
        found = figures.find(plain)
        carriers: dict[int, Citation] = {}
        for each in sums.written_sums(plain, found) if len(found) >= _LEAST_OF_A_SUM else ():
            places = [self._place_of(number.text, text) for number in each.terms if not sums.is_constant(number)]
            if not each.is_right or not places or None in places:
                return ()
            carriers.update((at, self._index.sentences[at]) for at in places if at is not None)
        return tuple(carriers[at] for at in sorted(carriers))

    def _place_of(self, number: str, text: str) -> int | None:
        """Return the sentence that has a number and most of the words of the text and the question."""
        said = stems(text, self._language) | self._questions[0]
        places = [at for stem in sorted(stems(number, self._language)) for at in self._index.with_stem(stem)]
        return max(places, key=lambda at: (self._index.weigh(self._index.stems[at] & said), -at), default=None)

    def _values_of(self, words: frozenset[str]) -> tuple[Citation, ...]:
        """Return the sentence, or two, that have every number of a sentence in another language."""
        numbers = {each for each in words if is_number(each) and len(each) > 1}
        carriers: list[Citation] = []
        while numbers and len(carriers) < _MOST_TRANSLATED:
            held: dict[int, set[str]] = {}
            for each in numbers:
                for at in self._index.with_stem(each):
                    held.setdefault(at, set()).add(each)
            if not held:
                return ()
            best = max(held, key=lambda at: (len(held[at]), -at))
            carriers.append(self._index.sentences[best])
            numbers -= held[best]
        return () if numbers else tuple(carriers)

    def _search(self, text: str, said: Sequence[Stem], first: bool, meaning: Meaning | None) -> Search:
        """Return the first search that finds carriers beside the question or a sentence of it, else the first one."""
        nothing: Search | None = None
        for claim in self._claims(text, said, first):
            found = find_carriers(self._index, claim, meaning)
            if found.carriers:
                return found
            nothing = nothing or found
        return nothing or Search((), None, "words")

    def _parts(self, text: str, said: Sequence[Stem], first: bool) -> tuple[Citation, ...]:
        """Return the sentences that carry a clause which says more than the question, else half of them all.

        The score of each is its share of the whole text, at least that of a clause.
        """
        spans = clause_spans(text, self._language)
        found = self._parts_of(text, said, spans, first)
        if not found and len(spans) > 1:
            found = self._parts_of(text, said, [(0, len(text))], first)
        return tuple(each for each in found if each.score >= thresholds.CLAUSE_SHARE)

    def _parts_of(
        self, text: str, said: Sequence[Stem], spans: list[tuple[int, int]], first: bool
    ) -> tuple[Citation, ...]:
        whole = self._index.weigh(frozenset(each.stem for each in said))
        found: dict[tuple[int, int], Citation] = {}
        for start, end in spans:
            within = [each for each in said if start <= each.start < end]
            words = frozenset(each.stem for each in within)
            if not words - self._questions[0] - self._sum_results:
                continue
            for carrier in self._find_parts(text, within, (start, end), first):
                place = (carrier.document, carrier.start)
                before = found[place].score if place in found else 0.0
                share = carrier.score * self._index.weigh(words) / whole
                found[place] = replace(carrier, score=round(min(1.0, before + share), 3))
        return tuple(found.values())

    def _find_parts(self, text: str, said: Sequence[Stem], span: tuple[int, int], first: bool) -> tuple[Citation, ...]:
        copy = self._index.copy_of(text[slice(*span)])
        if copy is not None and self._index.sentences[copy].document != CONVERSATION:
            return (self._index.sentences[copy],)
        tried = (find_parts(self._index, claim) for claim in self._claims(text, said, first))
        return next(filter(None, tried), ())

    def _claims(self, text: str, said: Sequence[Stem], first: bool) -> Iterator[Claim]:
        """Yield the claim of a text beside the question, and beside each sentence of it."""
        for asked in self._questions:
            yield make_claim(self._index, text, said, asked, first=first, exempt=self._sum_results)

    def _skip_reason(self, text: str, words: frozenset[str]) -> Uncheckable | None:
        """Return the reason for which a sentence needs no search, if there is one."""
        if text.startswith("```") or _DATA.match(text):
            return "code"
        if _RULE_ROW.fullmatch(text) or _REMARK.fullmatch(text):
            return "no_content"
        if not words - self._sum_results:
            return manner(text, text) or "no_content"
        return None if self._index.sentences else "no_evidence"

    def _new_numbers(self, said: frozenset[str]) -> bool:
        return any(is_number(stem) for stem in said - self._questions[0] - self._sum_results)

    def _names_more(self, text: str, said: frozenset[str]) -> bool:
        """Test if a sentence has a number or a name that the question has not."""
        if self._new_numbers(said):
            return True
        names = spans_of(text, "name", self._language) if self._language != "German" else ()
        return any(start and stems(text[start:end], self._language) - self._questions[0] for start, end in names)

    def _misquotes(self, text: str) -> bool:
        """Test if a quotation of this sentence, or the part of one that stands in it, is not verbatim."""
        line = " ".join(text.split())
        return any(span[:_SEEN] in line or line[:_SEEN] in span for span in self._frame.misquoted)


def is_foreign(language: str | None, answer: str, index: EvidenceIndex) -> bool:
    """Test if an answer is in a language, or in a script, that no part of the evidence can be in."""
    other_language = language is not None and not {None, language} & {*index.own_languages}
    scripts = languages.main_scripts(answer)
    return other_language or bool(scripts and index.scripts and not scripts & index.scripts)


def sum_results(answer: str, language: str | None) -> frozenset[str]:
    """Return the stems of the numbers that an answer itself works out from others."""
    text = figures.plain(answer)
    found = figures.find(text)
    if len(found) < _LEAST_OF_A_SUM:
        return frozenset()
    worked = sums.calculate_sums(text, found)
    return frozenset().union(*(stems(each.text, language) for each in found if worked.shows(each)))


# -- split a sentence into its clauses, each of which states something: evidence may carry one and not another


#: Clauses of a sentence that are looked at.
MOST = 8

# A mark between clauses, and the words that mostly begin one where no mark stands before it.
_BOUND = re.compile(
    r"[,;:()–—](?=\s)\s*|\s[-–—]\s|[、，；：،؛（）]|\s(?=(?:who|which|where|when|while|because|and|but|with|as|that|by"
    r"|und|aber|weil|während|mit|qui|que|où|et|mais|avec|parce|quien|donde|y|pero|con|porque|che|dove|e|ma|perché|onde"
    r"|mas|com|die|dat|waar|en|maar|met|omdat)\s)",
    re.IGNORECASE,
)


def clause_spans(sentence: str, language: str | None) -> list[tuple[int, int]]:
    """Return the (start, end) of each clause of a sentence, in order; together they are the whole of it.

    Its words are looked at once, however many bounds it has.

    >>> text = "Anna Hale kept the lamp, who was born on the island in 1904."
    >>> [text[start:end] for start, end in clause_spans(text, "English")]
    ['Anna Hale kept the lamp, ', 'who was born on the island in 1904.']
    """
    said = [(each.start, each.stem) for each in placed_stems(sentence, language)]
    starts = [start for start, _ in said]
    ends = list(_ends(sentence, said, starts))
    spans = list(zip([0, *ends], [*ends, len(sentence)], strict=True))
    if len(spans) > 1 and not _is_long(said[bisect_left(starts, spans[-1][0]) :]):
        _, end = spans.pop()
        spans[-1] = (spans[-1][0], end)
    return spans


def _ends(sentence: str, said: list[tuple[int, str]], starts: list[int]) -> Iterator[int]:
    """Yield the bounds behind which a clause begins: what stands before each is long enough."""
    made, at, words = 1, 0, set[str]()
    for found in _BOUND.finditer(sentence):
        if made == MOST:
            return
        until = bisect_left(starts, found.end())
        words |= {stem for _, stem in said[at:until]}
        at = until
        if len(words) >= thresholds.CLAUSE_WORDS:
            yield found.end()
            made, words = made + 1, set()


def _is_long(said: list[tuple[int, str]]) -> bool:
    return len({stem for _, stem in said}) >= thresholds.CLAUSE_WORDS
