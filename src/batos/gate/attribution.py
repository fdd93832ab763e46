"""Find the sentences of the evidence that carry each sentence of an answer: the model writes, the kernel cites."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

from batos.gate import figures, languages, sums
from batos.gate.carrying import Carrier, Claim, Missing, find_carriers, find_parts, make_claim
from batos.gate.clauses import clause_spans
from batos.gate.evidence_index import CONVERSATION, EvidenceIndex
from batos.gate.ground import Ground
from batos.gate.quotations import not_verbatim
from batos.gate.rivals import spans_of
from batos.gate.stems import is_number, stems
from batos.gate.uncheckable import Uncheckable, frame_length, manner
from batos.memory.evidence import Evidence
from batos.memory.sentences import sentence_spans

State: TypeAlias = Literal["carried", "not_carried", "not_checkable"]

#: Sentences of a question that are taken as questions of their own.
_MOST_QUESTIONS = 6
#: Numbers of the shortest sum with its result.
_LEAST_OF_A_SUM = 3
#: Characters by which a quotation is found again in a sentence.
_SEEN = 40
#: A remark in square brackets, but no link and no index; and the number of a document in round ones.
_REMARK = re.compile(
    r"[^\S\n]?(?:(?<![\w\])])\[[^\[\]\n]{1,60}\](?![(\[])"
    r"|\((?:see )?(?:documents?|dokumente?|documentos?|documenti?|docs?|ids?|source)\.? ?#?\d{1,2}\))",
    re.IGNORECASE,
)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
#: Forms that state nothing that evidence could carry.
_NOT_A_CLAIM = frozenset({"question", "heading", "greeting", "nothing_found"})


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
    carriers: tuple[Carrier, ...] = ()
    nearest: Carrier | None = None
    parts: tuple[Carrier, ...] = ()
    reason: Missing | Uncheckable | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sentences of an answer, in order, each with its state."""

    sentences: tuple[AttributedSentence, ...]

    def select(self, state: State) -> tuple[AttributedSentence, ...]:
        """Return the sentences in a state."""
        return tuple(each for each in self.sentences if each.state == state)

    @property
    def carriers(self) -> tuple[Carrier, ...]:
        """Return the carriers in documents of all sentences, each place once, with its best score."""
        best: dict[tuple[int, int], Carrier] = {}
        for carrier in (carrier for each in self.sentences for carrier in each.carriers):
            place = (carrier.document, carrier.start)
            if carrier.document != CONVERSATION and (place not in best or best[place].score < carrier.score):
                best[place] = carrier
        return tuple(best.values())

    @property
    def carried_share(self) -> float | None:
        """Return the share of the sentences that can be checked that are carried; None if none can be."""
        checked = [each for each in self.sentences if each.state != "not_checkable"]
        return sum(each.state == "carried" for each in checked) / len(checked) if checked else None


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """Embeddings, at any length: of the answer's sentences in the order of `answer_sentences`, and of the evidence's in
    the order of `EvidenceIndex.sentences`.
    """

    answer: Sequence[Sequence[float]]
    evidence: Sequence[Sequence[float]]


def answer_sentences(answer: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of an answer; a block of code is one."""
    found: list[tuple[int, int]] = []
    code = [each.span() for each in _CODE.finditer(answer)]
    for (_, start), (end, _) in pairwise([(0, 0), *code, (len(answer), len(answer))]):
        found += [(start + first, start + last) for first, last in sentence_spans(answer[start:end])]
    return sorted([*found, *code])


def attribute(
    answer: str,
    question: str,
    evidence: Evidence | EvidenceIndex,
    *,
    vectors: SentenceVectors | None = None,
    since: int = 0,
    first: bool = True,
) -> Attribution:
    """Find which sentences of the evidence carry each sentence of an answer to a question.

    An `EvidenceIndex` that is built once spares the building for each answer. Words alone decide; `vectors` let a
    sentence be carried that says the same in other words. Sentences that begin before `since` are left out; `first`
    tells that none of them could be checked.
    """
    index = evidence if isinstance(evidence, EvidenceIndex) else EvidenceIndex(evidence)
    reader = _Reader(answer, question, index)
    given = vectors.answer if vectors else ()
    sentences: list[AttributedSentence] = []
    for number, (start, end) in enumerate(answer_sentences(answer)):
        if start < since:
            continue
        meaning = (given[number], vectors.evidence) if vectors and number < len(given) else None
        each = reader.read(start, end, first=first, meaning=meaning)
        first = first and each.state == "not_checkable"
        sentences.append(each)
    return Attribution(tuple(sentences))


class _Reader:
    """An answer that is read sentence by sentence beside the evidence."""

    def __init__(self, answer: str, question: str, index: EvidenceIndex) -> None:
        self._answer, self._index = answer, index
        own = languages.guess(languages.prose(answer))
        self._language = own or languages.guess(question) or index.language
        asked = [question[start:end] for start, end in sentence_spans(question)]
        #: The question, and each sentence of it where it asks several things.
        self._questions = [stems(text, self._language) for text in dict.fromkeys((question, *asked[:_MOST_QUESTIONS]))]
        self._foreign = _foreign(own, answer, index)
        ground = Ground(question, index.evidence)
        self._misquoted = [" ".join(span.split()) for span in not_verbatim(answer, ground)]

    def read(
        self, start: int, end: int, *, first: bool, meaning: tuple[Sequence[float], Sequence[Sequence[float]]] | None
    ) -> AttributedSentence:
        """Return a sentence with its state. `first`: no sentence before it could be checked."""
        whole = self._answer[start:end]
        # A remark in brackets, such as [1] or [lamp.txt], is no part of what a sentence states.
        text = whole if whole.startswith("```") else _REMARK.sub("", whole).strip() or whole
        return replace(self._read_bare(start, end, text, first=first, meaning=meaning), text=whole)

    def _read_bare(
        self,
        start: int,
        end: int,
        text: str,
        *,
        first: bool,
        meaning: tuple[Sequence[float], Sequence[Sequence[float]]] | None,
    ) -> AttributedSentence:
        if _REMARK.fullmatch(text):
            return AttributedSentence(start, end, text, "not_checkable", reason="no_content")
        reason = self._skip_reason(text)
        if reason is not None:
            return AttributedSentence(start, end, text, "not_checkable", reason=reason)
        copy = self._index.copy_of(text)
        if copy is not None:
            carrier = Carrier.from_sentence(self._index.sentences[copy], 1.0)
            return AttributedSentence(start, end, text, "carried", (carrier,))
        said = stems(text, self._language)
        form = manner(text, self._answer[self._answer.rfind("\n", 0, start) + 1 : end])
        if form in _NOT_A_CLAIM and not self._new_numbers(said):
            return AttributedSentence(start, end, text, "not_checkable", reason=form)
        claims = [self._claim(text[frame_length(text) :], asked, first) for asked in self._questions]
        tried = [find_carriers(self._index, claim, meaning) for claim in claims]
        best = next((each for each in tried if each.carriers), tried[0])
        missing: Missing | None = "quotation" if self._misquotes(text) else best.missing
        if missing is None:
            return AttributedSentence(start, end, text, "carried", best.carriers)
        if missing != "quotation":
            claimless = form is not None and not self._names_more(text, said)
            if claimless or self._foreign:
                return AttributedSentence(start, end, text, "not_checkable", reason=form if claimless else "language")
        nearest = best.nearest or next(iter(best.carriers), None)
        parts = () if missing == "quotation" else self._parts(text[frame_length(text) :], first)
        return AttributedSentence(start, end, text, "not_carried", nearest=nearest, parts=parts, reason=missing)

    def _parts(self, text: str, first: bool) -> tuple[Carrier, ...]:
        """Return the sentences that carry a clause which says more than the question, else half of them all.

        The score of each is its share of the whole text.
        """
        spans = clause_spans(text, self._language)
        found = self._parts_of(text, spans, first)
        return found if found or len(spans) == 1 else self._parts_of(text, [(0, len(text))], first)

    def _parts_of(self, text: str, spans: list[tuple[int, int]], first: bool) -> tuple[Carrier, ...]:
        whole = self._index.weigh(stems(text, self._language))
        found: dict[tuple[int, int], Carrier] = {}
        for start, end in spans:
            said = stems(text[start:end], self._language)
            if not said - self._questions[0] - self._sum_results:
                continue
            for carrier in self._find_parts(text[start:end], first):
                place = (carrier.document, carrier.start)
                before = found[place].score if place in found else 0.0
                share = carrier.score * self._index.weigh(said) / whole
                found[place] = replace(carrier, score=round(min(1.0, before + share), 3))
        return tuple(found.values())

    def _find_parts(self, clause: str, first: bool) -> tuple[Carrier, ...]:
        copy = self._index.copy_of(clause)
        if copy is not None and self._index.sentences[copy].document != CONVERSATION:
            return (Carrier.from_sentence(self._index.sentences[copy], 1.0),)
        tried = (find_parts(self._index, self._claim(clause, asked, first)) for asked in self._questions)
        return next(filter(None, tried), ())

    def _skip_reason(self, text: str) -> Uncheckable | None:
        """Return the reason for which a sentence needs no search, if there is one."""
        if text.startswith("```"):
            return "code"
        if not stems(text, self._language) - self._sum_results:
            return manner(text, text) or "no_content"
        return None if self._index.sentences else "no_evidence"

    def _claim(self, text: str, asked: frozenset[str], first: bool) -> Claim:
        return make_claim(self._index, text, asked, self._language, first=first, exempt=self._sum_results)

    @cached_property
    def _sum_results(self) -> frozenset[str]:
        """Return the numbers that the answer itself works out from others."""
        text = figures.plain(self._answer)
        found = figures.find(text)
        if len(found) < _LEAST_OF_A_SUM:
            return frozenset()
        worked = sums.calculate_sums(text, found)
        return frozenset().union(*(stems(each.text, self._language) for each in found if worked.shows(each)))

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
        return any(span[:_SEEN] in line or line[:_SEEN] in span for span in self._misquoted)


def _foreign(language: str | None, answer: str, index: EvidenceIndex) -> bool:
    """Test if an answer is in a language, or in a script, that no part of the evidence can be in."""
    other_language = language is not None and None not in index.guesses and language not in index.guesses
    scripts = languages.main_scripts(answer)
    return other_language or bool(scripts and index.scripts and not scripts & index.scripts)
