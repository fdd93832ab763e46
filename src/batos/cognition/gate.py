"""The quality gate: named pure checks of an answer, computed and no model's opinion."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from batos.cognition.evidence import Evidence, words

#: Shortest and longest answer that can be one, in characters.
SHORTEST, LONGEST = 2, 4_000

_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*\d|(?<![\w.])\d\b")
_NAME = re.compile(r"\b[A-ZÀ-ÖØ-Þ]\w+(?:[ -][A-ZÀ-ÖØ-Þ]\w+)+")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{8,400})[\"”“»]")
_LIST_MARK = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A citation: the number of a document and what it is said to say."""

    document: int
    quote: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer with what it claims. `open_queries` are the numbers of the sub-queries that got no answer."""

    question: str
    answer: str
    citations: tuple[Quoted, ...]
    unanswered: frozenset[int]
    open_queries: frozenset[int]
    evidence: Evidence
    known_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fault:
    """A concrete fault: which check, and what to mend, as the model is told it."""

    check: str
    what: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which checks were made and every fault that they found."""

    checked: tuple[str, ...]
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.faults

    def as_dict(self) -> dict[str, object]:
        """For provenance."""
        faults = [{"check": fault.check, "what": fault.what} for fault in self.faults]
        return {"ok": self.ok, "checked": list(self.checked), "faults": faults}


Check: TypeAlias = Callable[[Draft], Iterator[str]]


def length(draft: Draft) -> Iterator[str]:
    """An answer says something, and not too much."""
    size = len(draft.answer.strip())
    if size < SHORTEST:
        yield "The answer is empty."
    elif size > LONGEST:
        yield f"The answer has {size} characters; keep it under {LONGEST}."


def answered(draft: Draft) -> Iterator[str]:
    """Every sub-query is answered or named as unanswered."""
    for number in sorted(draft.open_queries - draft.unanswered):
        yield f"Sub-question {number} got no answer; name it as unanswered."


def citation_exists(draft: Draft) -> Iterator[str]:
    """Every citation names a document that was there."""
    for citation in draft.citations:
        if draft.evidence.find(citation.document) is None:
            yield f"There is no document {citation.document}."


def citation_verbatim(draft: Draft) -> Iterator[str]:
    """Every quotation stands word for word in the document it names; only line breaks may differ."""
    for citation in draft.citations:
        passage = draft.evidence.find(citation.document)
        if passage is None:
            continue
        quote = _flat(citation.quote)
        if not quote or quote not in _flat(passage.text):
            yield f"Document {citation.document} does not say {citation.quote!r}; quote it word for word."


def quotations(draft: Draft) -> Iterator[str]:
    """What stands in double quotes inside the answer is said word for word by a document, a turn or the question."""
    if not draft.evidence.passages:
        return
    there = _flat(f"{draft.evidence.text}\n{draft.question}")
    for found in _QUOTED.findall(draft.answer):
        span = _flat(found).rstrip(".,;:!?")
        # A word or two in quotes is a way of speaking, not a citation.
        if len(span.split()) >= 4 and span not in there:
            yield f"No document says {found!r}; quote word for word or drop the quotation marks."


def cited(draft: Draft) -> Iterator[str]:
    """An answer given beside documents marks what it took from them."""
    if draft.evidence.passages and not draft.citations and not draft.unanswered:
        yield "Nothing is cited; quote the documents that the answer rests on, or name what is unanswered."


def numbers(draft: Draft) -> Iterator[str]:
    """Numbers of the answer occur in the evidence or the question; single digits may be counts."""
    if not draft.evidence.passages:
        return
    there = {_plain_number(found) for found in _NUMBER.findall(f"{draft.evidence.text}\n{draft.question}")}
    text = _LIST_MARK.sub("", draft.answer)
    for found in dict.fromkeys(_NUMBER.findall(text)):
        if len(_plain_number(found)) > 1 and _plain_number(found) not in there:
            yield f"The number {found} is in no document; correct or remove it."


def names(draft: Draft) -> Iterator[str]:
    """Names of two words or more occur in the evidence or the question."""
    if not draft.evidence.passages:
        return
    there = set(words(f"{draft.evidence.text}\n{draft.question}")) | draft.known_names
    for name in dict.fromkeys(_NAME.findall(draft.answer)):
        # The first word may only begin a sentence; the others are what makes it a name.
        if not set(words(name)[1:]) <= there:
            yield f"The name {name!r} is in no document; correct or remove it."


def language(draft: Draft) -> Iterator[str]:
    """The answer is written in a script that the question or the evidence uses."""
    used = _scripts(draft.answer)
    strange = used - _scripts(draft.question) - _scripts(draft.evidence.text) - {"LATIN"}
    if used and strange == used:
        yield "The answer is in another script than the question; answer in the question's language."


CHECKS: tuple[Check, ...] = (
    length,
    answered,
    citation_exists,
    citation_verbatim,
    quotations,
    cited,
    numbers,
    names,
    language,
)


def judge(draft: Draft, checks: tuple[Check, ...] = CHECKS) -> Verdict:
    """All faults of all checks."""
    faults = tuple(Fault(check.__name__, what) for check in checks for what in check(draft))
    return Verdict(tuple(check.__name__ for check in checks), faults)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _plain_number(text: str) -> str:
    """One form for 1,200 and 1.200 and 1200: digits alone."""
    return re.sub(r"[.,]", "", text)


def _scripts(text: str) -> set[str]:
    """The scripts of a text's letters by Unicode name, those that make up a tenth of it at least."""
    counts: dict[str, int] = {}
    for letter in text:
        if letter.isalpha():
            script = unicodedata.name(letter, "UNKNOWN").split(" ")[0]
            counts[script] = counts.get(script, 0) + 1
    total = sum(counts.values())
    return {script for script, count in counts.items() if count * 10 >= total}
