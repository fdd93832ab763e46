"""Citations that are computed from an attribution, and the openness of a question that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution
from batos.gate.evidence_index import CONVERSATION, Citation
from batos.gate.quotations import Quotation, locate
from batos.gate.uncheckable import Uncheckable, frame_length, manner
from batos.memory.evidence import Evidence
from batos.protocol.evidence_documents import CitationDocument, SentenceDocument

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
            found.append({**each.as_dict(), "name": passage.name, "sha256": passage.sha256})
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
