"""Find the sentences of the evidence that carry each sentence of an answer, and compute its citations from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from batos.gate import languages
from batos.gate.answer_reader import AnswerFrame, AnswerReader, AttributedSentence, State, is_foreign, sum_results
from batos.gate.carrying import Meaning
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex
from batos.gate.ground import Ground
from batos.gate.languages import stems
from batos.gate.quotations import Quotation, locate, not_verbatim
from batos.gate.uncheckable import Uncheckable, frame_length, manner
from batos.memory.evidence import Evidence
from batos.memory.segmentation import sentence_spans
from batos.protocol.evidence_documents import CitationDocument, SentenceDocument

#: Sentences of a question that are taken as questions of their own.
_MOST_QUESTIONS = 6
#: Questions that a process remembers: each part, the answer and its revision are read beside the same ones.
_REMEMBERED = 16
#: Characters of an answer that tell its language, how much longer it has grown when it is guessed again, and characters
#: before a sentence of a stream that it is read with: no quotation is longer.
_HEAD, _GROWN, _RECENT = 4_000, 1.25, 1_000
_LINE = re.compile(r"[^\s][^\n]*")
_KEYED = re.compile(r"[^\n:：.]{1,60}[:：]\s?\S")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sentences of an answer, in order, each with its state."""

    sentences: tuple[AttributedSentence, ...]

    def select(self, state: State) -> tuple[AttributedSentence, ...]:
        """Return the sentences in a state."""
        return tuple(each for each in self.sentences if each.state == state)

    @property
    def carried_share(self) -> float | None:
        """Return the share of the sentences that can be checked that are carried; None if none can be."""
        checked = [each for each in self.sentences if each.state != "not_checkable"]
        return sum(each.state == "carried" for each in checked) / len(checked) if checked else None


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """Embeddings in order: of the answer's sentences by `answer_sentences`, of the evidence's by `EvidenceIndex`."""

    answer: Sequence[Sequence[float]]
    evidence: Sequence[Sequence[float]]


def answer_sentences(answer: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of an answer; a block of code is one."""
    found: list[tuple[int, int]] = []
    code = [each.span() for each in _CODE.finditer(answer)]
    for (_, start), (end, _) in pairwise([(0, 0), *code, (len(answer), len(answer))]):
        for first, last in sentence_spans(answer[start:end]):
            found += _keyed_lines(answer, start + first, start + last)
    return sorted([*found, *code])


def _keyed_lines(answer: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return a sentence, cut between lines that are facts behind their keys: `price: 12 euro`."""
    lines = [each.span() for each in _LINE.finditer(answer, start, end)]
    spans = [(start, end)]
    for (one, _), (other, last) in pairwise(lines):
        if _KEYED.match(answer, one, last) and _KEYED.match(answer, other, last):
            before, _ = spans.pop()
            spans += [(before, before + len(answer[before:other].rstrip())), (other, end)]
    return spans


def attribute(
    answer: str, question: str, evidence: Evidence | EvidenceIndex, *, vectors: SentenceVectors | None = None
) -> Attribution:
    """Find which sentences of the evidence carry each sentence of an answer to a question.

    An `EvidenceIndex` that is built once spares the building for each answer. Words alone decide; `vectors` let a
    sentence be carried that says the same in other words.
    """
    index = evidence if isinstance(evidence, EvidenceIndex) else EvidenceIndex(evidence)
    return Attributor(question, index).attribute(answer, vectors)


class Attributor:
    """Attributes answers to a question beside one evidence; a sentence that it has read is not read again.

    A streamed answer is read as it grows, and once more as a whole; what a sentence's state rests on may change between
    them, and then the sentence is read again.
    """

    def __init__(self, question: str, index: EvidenceIndex) -> None:
        self.question, self.index = question, index
        self._ground = Ground(question, index.evidence)
        #: The newest text and its frame: the end of a stream is judged next.
        self._framed: tuple[str, AnswerFrame] | None = None
        #: The language of a stream as far as it was heard, with the length at which it was guessed.
        self._spoken: tuple[int, str | None, bool] | None = None
        self._known: dict[_SentencePlace, AttributedSentence] = {}

    def attribute(self, answer: str, vectors: SentenceVectors | None = None) -> Attribution:
        """Return the sentences of an answer."""
        if self._framed is None or self._framed[0] != answer:
            self._framed = answer, self._frame_of(answer, *self._tongue(answer))
        return self._attribute(answer, answer_sentences(answer), self._framed[1], vectors)

    def attribute_part(self, heard: str, start: int, *, first: bool) -> Attribution:
        """Return the sentences of an answer, as far as it is heard, from a place on; `first` tells that none of those
        before could be checked.

        Only what stands near is read for them, so that a long answer costs no more for each.
        """
        head = heard[:_HEAD]
        if self._spoken is None or len(head) > _GROWN * self._spoken[0] or len(head) < self._spoken[0]:
            self._spoken = len(head), *self._tongue(head)
        frame = self._frame_of(heard[max(0, start - _RECENT) :], *self._spoken[1:])
        spans = [(start + one, start + other) for one, other in answer_sentences(heard[start:])]
        return self._attribute(heard, spans, frame, None, first=first)

    def _attribute(
        self,
        answer: str,
        spans: Sequence[tuple[int, int]],
        frame: AnswerFrame,
        vectors: SentenceVectors | None,
        *,
        first: bool = True,
    ) -> Attribution:
        reader = AnswerReader(answer, self.index, frame, _question_stems(self.question, frame.language))
        given = vectors.answer if vectors else ()
        sentences: list[AttributedSentence] = []
        for number, (start, end) in enumerate(spans):
            meaning = (given[number], vectors.evidence) if vectors and number < len(given) else None
            each = self._read(reader, _SentencePlace(start, end, first, reader.line(start, end), frame), meaning)
            first = first and each.state == "not_checkable"
            sentences.append(each)
        return Attribution(tuple(sentences))

    def _read(self, reader: AnswerReader, reading: _SentencePlace, meaning: Meaning | None) -> AttributedSentence:
        """Read a sentence; a meaning says nothing of one that its words alone carry."""
        known = self._known.get(reading)
        if known is None:
            known = self._known[reading] = reader.read(reading.start, reading.end, first=reading.first)
        if meaning is None or known.state == "carried":
            return known
        return reader.read(reading.start, reading.end, first=reading.first, meaning=meaning)

    def _tongue(self, answer: str) -> tuple[str | None, bool]:
        """Return the language of an answer, and if no part of the evidence can be in it."""
        own = languages.guess(languages.prose(answer))
        language = own or languages.guess(self.question) or self.index.language
        return language, is_foreign(own, answer, self.index)

    def _frame_of(self, text: str, language: str | None, foreign: bool) -> AnswerFrame:
        misquoted = tuple(" ".join(span.split()) for span in not_verbatim(text, self._ground))
        return AnswerFrame(language, foreign, misquoted, sum_results(text, language))


@dataclass(frozen=True, slots=True)
class _SentencePlace:
    """A sentence at its place, all that its state follows from beside the question and the evidence."""

    start: int
    end: int
    #: No sentence before it could be checked.
    first: bool
    #: The line that it stands in, up to its end.
    line: str
    frame: AnswerFrame


@lru_cache(maxsize=_REMEMBERED)
def _question_stems(question: str, language: str | None) -> tuple[frozenset[str], ...]:
    """Return the stems of a question, and of each sentence of it where it asks several things."""
    asked = [question[start:end] for start, end in sentence_spans(question)]
    texts = dict.fromkeys((question, *asked[:_MOST_QUESTIONS]))
    return tuple(dict.fromkeys(stems(text, language) for text in texts))


# -- an answer as it grows: each sentence is attributed once, as soon as the next one begins


#: Marks that may end a sentence, or a code block.
_MAY_END = re.compile(r"[.!?…。！？؟۔।॥\n`]")


#: Characters of a sentence from which on its end is looked for only when it has grown by a tenth: a block of code ends
#: late, and each of its lines may be the end.
_LONG, _LONGER = 400, 1.1


class GrowingAttribution:
    """An answer that is heard piece by piece. Words alone decide, and each sentence is read once."""

    def __init__(self, attributor: Attributor) -> None:
        self._attributor = attributor
        self._text = ""
        #: The place up to which sentences were read, and if none of them could be checked.
        self._read_to, self._first = 0, True
        #: A mark that may end a sentence was heard behind that place, and the length at which to look for one.
        self._may_end, self._look_at = False, 0

    def add(self, piece: str) -> tuple[AttributedSentence, ...]:
        """Return the sentences that have ended when a piece is added, and that were not returned before."""
        self._may_end = self._may_end or _MAY_END.search(piece) is not None
        self._text += piece
        unread = len(self._text) - self._read_to
        if not self._may_end or not piece.strip() or unread < self._look_at:
            return ()
        spans = answer_sentences(self._text[self._read_to :])
        if len(spans) > 1:
            return self._read(self._read_to + spans[-2][1])
        self._look_at = int(unread * _LONGER) if unread > _LONG else 0
        return ()

    def finish(self) -> tuple[AttributedSentence, ...]:
        """Return the sentences that were not returned yet: the answer is whole."""
        return self._read(len(self._text))

    def _read(self, end: int) -> tuple[AttributedSentence, ...]:
        found = self._attributor.attribute_part(self._text[:end], self._read_to, first=self._first).sentences
        self._read_to, self._look_at = end, 0
        self._may_end = _MAY_END.search(self._text, end) is not None
        self._first = self._first and all(each.state == "not_checkable" for each in found)
        return found


#: Longest gist of an answer, in characters.
GIST = 200
#: Forms of a sentence at the head of an answer that are no part of its gist.
_BEFORE: frozenset[Uncheckable] = frozenset(("greeting", "heading", "lead_in", "question"))


def citations_of(attribution: Attribution) -> tuple[Citation, ...]:
    """Return the sentences of documents that carry an answer, each once, for the sentence that it carries best.

    Of a sentence that none carries whole, those that carry a clause are cited, with a lower score.
    """
    best: dict[tuple[int, int], Citation] = {}
    for sentence in attribution.sentences:
        for each in (*sentence.carriers, *sentence.parts):
            place = (each.document, each.start)
            if each.document != CONVERSATION and (place not in best or best[place].score < each.score):
                best[place] = replace(each, sentence=sentence.text)
    return tuple(best.values())


def locate_citation(quoted: Quotation, evidence: Evidence) -> Citation | None:
    """Return the citation of words that a method quotes, as the file has them; None if they do not stand there."""
    passage = evidence.find(quoted.document)
    span = locate(quoted.quote, passage.text) if passage else None
    if passage is None or span is None:
        return None
    start, end = span
    return Citation(passage.number, passage.start + start, passage.start + end, passage.text[start:end])


def in_files(citations: Iterable[Citation], evidence: Evidence) -> list[CitationDocument]:
    """Return the citations of documents that the evidence has, each with its file."""
    found: list[CitationDocument] = []
    for each in citations:
        passage = evidence.find(each.document)
        if passage is not None:
            told: CitationDocument = {**each.as_dict(), "name": passage.name, "sha256": passage.sha256}
            if page := passage.page_at(told["span"][0]):
                told["page"] = page
            found.append(told)
    return found


def finds_nothing(attribution: Attribution) -> bool:
    """Test if an answer states only that nothing was found."""
    states = {each.state for each in attribution.sentences}
    return "nothing_found" in {each.reason for each in attribution.sentences} and states == {"not_checkable"}


def is_known(attribution: Attribution, evidence: Evidence) -> bool:
    """Test if an answer is known: beside documents, if they carry any clause of it that can be checked."""
    nothing = attribution.carried_share == 0 and not any(each.parts for each in attribution.sentences)
    return not (evidence.passages and nothing) and not finds_nothing(attribution)


def gist_of(answer: str, attribution: Attribution) -> str:
    """Return what an answer says in short: its text up to the end of its first sentence that states something."""
    start: int | None = None
    for each in attribution.sentences:
        if start is None and manner(each.text, each.text) in _BEFORE:
            continue
        if start is None:
            start = each.start + frame_length(each.text)
        if _states(each):
            return answer[start : each.end][:GIST]
    return answer[start or 0 :][:GIST]


def _states(sentence: AttributedSentence) -> bool:
    return sentence.state != "not_checkable" or sentence.reason in {"no_evidence", "language", "nothing_found"}


def list_sentences(attribution: Attribution) -> list[SentenceDocument]:
    """Return the sentences of an answer with their states as provenance stores them."""
    found: list[SentenceDocument] = []
    for each in attribution.sentences:
        told = SentenceDocument(span=[each.start, each.end], state=each.state)
        if each.reason is not None:
            told["reason"] = each.reason
        found.append(told)
    return found
