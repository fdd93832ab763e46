"""The quality gate: named pure checks of an answer, computed and no model's opinion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

from batos.cognition import figures, languages
from batos.cognition.citing import Quoted, locate, stands
from batos.cognition.evidence import Evidence, Passage, words

#: Shortest and longest answer that can be one, in characters.
SHORTEST, LONGEST = 2, 4_000
#: So many words in a row that stand in a document are taken from it.
TAKEN = 8
#: Words from which on what stands in quotation marks is a quotation and not a way of speaking; letters where words
#: have no blanks between them.
QUOTED_WORDS, QUOTED_LETTERS = 4, 10

_QUOTATION = re.compile(
    r"\"([^\"\n]{0,400})\"|“([^“”\n]{0,400})”|„([^„“”\n]{0,400})[“”]|«([^«»\n]{0,400})»|»([^«»\n]{0,400})«"
    r"|「([^「」\n]{0,400})」"
)
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
# Blanks within a line only: where `\s` could also eat line breaks, a text of line breaks takes cubic time.
_LIST_MARK = re.compile(r"^[^\S\n]*\d+[.)]\s", re.MULTILINE)
_HEADING = re.compile(r"^[^\S\n]*#[^\n]*$|^[^\S\n]*(?:(?:[-*•]|\d+[.)])[^\S\n]*)?\*\*[^*\n]+\*\*", re.MULTILINE)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")

_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪİĶŁŃŇŌŐŒŘŚŞŠŤŪŮŰŸŹŻŽΑ-ΩА-ЯЁЇІЄҐ"
_CAPITAL = rf"[{_UPPER}][^\W\d_]+"
_NAME = re.compile(rf"(?<!\w){_CAPITAL}(?:[ -]{_CAPITAL})+")
_TITLE = "Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Mme|Monsieur|Madame|Señora?|Sra?|Signora?"
_TITLED = re.compile(rf"(?<!\w)(?:{_TITLE})\.? ({_CAPITAL}(?: {_CAPITAL})*)")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:…\n]|[-*•]|\d[.)])[\s\"“„«'(*_]*\Z")


@dataclass(frozen=True, slots=True)
class Fault:
    """A concrete fault: which check, and what to mend, as the model is told it."""

    check: str
    what: str

    def as_dict(self) -> dict[str, str]:
        """For provenance."""
        return {"check": self.check, "what": self.what}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which checks were made and every fault that they found."""

    checked: tuple[str, ...]
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.faults

    def as_dict(self) -> dict[str, Any]:
        """For provenance."""
        return {"ok": self.ok, "checked": list(self.checked), "faults": [fault.as_dict() for fault in self.faults]}


class Ground:
    """What an answer may rest on, in the forms in which checks look things up; each is made when first asked for."""

    def __init__(
        self, question: str, evidence: Evidence, own_names: frozenset[str] = frozenset(), asked: str = ""
    ) -> None:
        self.question = question
        self.evidence = evidence
        self._own_names = own_names
        turns = (f"{turn.question}\n{turn.answer}" for turn in evidence.turns)
        #: What is not a document: the question, what it was made from, and the conversation.
        self.said = "\n".join((question, asked, *(summary.text for summary in evidence.view), *turns))

    @cached_property
    def text(self) -> str:
        """All of it, for checks of what occurs."""
        return "\n".join((*(each.text for each in self.evidence.passages), self.said))

    @cached_property
    def figures(self) -> frozenset[Decimal | str]:
        """Every number in it, in every reading."""
        return figures.known(self.text)

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Its words by their first three letters."""
        found: dict[str, set[str]] = {}
        for word in {*words(self.text), *self._own_names}:
            found.setdefault(word[:3], set()).add(word)
        return found

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts that it is mainly written in."""
        return languages.main_scripts(self.text)

    @cached_property
    def lines(self) -> dict[int, str]:
        """The words of each passage, a blank around each."""
        return {each.number: _line(each.text) for each in self.evidence.passages}

    @cached_property
    def said_line(self) -> str:
        """The words of question and conversation, a blank around each."""
        return _line(self.said)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages of the evidence."""
        return self.evidence.passages


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer with what it claims. `queries` counts the sub-queries, `open_queries` are those without an answer."""

    answer: str
    citations: tuple[Quoted, ...]
    unanswered: frozenset[int]
    ground: Ground
    queries: int = 1
    open_queries: frozenset[int] = frozenset()


Check: TypeAlias = Callable[[Draft], Iterator[str]]


def length(draft: Draft) -> Iterator[str]:
    """An answer says something, and not too much."""
    size = len(draft.answer.strip())
    if size < SHORTEST:
        yield "The answer is empty."
    elif size > LONGEST:
        yield f"The answer has {size} characters; keep it under {LONGEST}."


def answered(draft: Draft) -> Iterator[str]:
    """Every sub-query is answered or named as unanswered, and no other is named."""
    for number in sorted(draft.open_queries - draft.unanswered):
        yield f"Sub-question {number} got no answer; name it as unanswered."
    for number in sorted(draft.unanswered):
        if number > draft.queries:
            yield f"There is no sub-question {number} to be unanswered."


def citation_exists(draft: Draft) -> Iterator[str]:
    """Every citation names a document that was there."""
    for citation in draft.citations:
        if draft.ground.evidence.find(citation.document) is None:
            yield f"There is no document {citation.document}."


def citation_verbatim(draft: Draft) -> Iterator[str]:
    """Every citation stands word for word in the document that it names."""
    for citation in draft.citations:
        if draft.ground.evidence.find(citation.document) and not stands(citation, draft.ground.evidence):
            yield f"Document {citation.document} does not say {citation.quote!r}; quote it word for word."


def quotations(draft: Draft) -> Iterator[str]:
    """What stands in quotation marks inside the answer is said word for word by a document, a turn or the question."""
    if not draft.ground.passages:
        return
    for found in _QUOTATION.finditer(languages.prose(draft.answer)):
        spans = [span.strip() for span in _ELLIPSIS.split(next(filter(None, found.groups()), ""))]
        for span in spans:
            if _is_quotation(span) and not _said(span, draft.ground):
                yield f"No document says {span!r}; quote word for word or drop the quotation marks."


def cited(draft: Draft) -> Iterator[str]:
    """An answer given beside documents cites them, unless it names every sub-query as unanswered."""
    if draft.ground.passages and not draft.citations and len(draft.unanswered) < max(1, draft.queries):
        yield "Nothing is cited; quote the documents that the answer rests on, or name what is unanswered."


def marked(draft: Draft) -> Iterator[str]:
    """What the answer takes from a document word for word is marked by a citation of it: documents are not trusted."""
    citing = {citation.document for citation in draft.citations}
    uncited = {number: line for number, line in draft.ground.lines.items() if number not in citing}
    if not uncited:
        return
    trusted = [draft.ground.said_line, *(line for number, line in draft.ground.lines.items() if number in citing)]
    told: set[int] = set()
    for run in _runs(draft.answer):
        holding = [number for number, line in uncited.items() if run in line]
        if holding and not told.intersection(holding) and not any(run in line for line in trusted):
            told.add(holding[0])
            yield f"{run.strip()!r} is taken from document {holding[0]}; cite that document."


def numbers(draft: Draft) -> Iterator[str]:
    """Numbers of the answer occur in evidence or question, or are worked out in it; counts below ten are free."""
    if not draft.ground.passages:
        return
    text = _LIST_MARK.sub("", draft.answer)
    there = draft.ground.figures | figures.computed(text)
    for figure in figures.found(text):
        # A quotation may begin or end inside a row of digit groups, which is then another number, as it stands.
        as_it_stands = not figure.isdigit() and figure in draft.ground.text
        if not as_it_stands and not figures.is_known(figure, there):
            yield f"The number {figure} is in no document; correct it, show how it is calculated, or remove it."


def names(draft: Draft) -> Iterator[str]:
    """Names of two words or more, and those after a title, occur in the evidence or the question.

    German writes every noun like a name, so there only names after a title are told.
    """
    if not draft.ground.passages:
        return
    text = _HEADING.sub("", languages.prose(draft.answer))
    claimed = {found[1] for found in _TITLED.finditer(text)}
    if languages.guess(text) != "German":
        claimed |= {_bare(found, text) for found in _NAME.finditer(text)}
    for name in sorted(claimed):
        if not all(_is_known(word, draft.ground) for word in words(name)):
            yield f"The name {name!r} is in no document; correct or remove it."


def language(draft: Draft) -> Iterator[str]:
    """The answer is written in the language of the question, as far as scripts and small words tell."""
    question, answer = draft.ground.question, languages.prose(_QUOTATION.sub(" ", draft.answer))
    if languages.names_language(question):
        return
    asked, said = languages.main_scripts(question), languages.main_scripts(answer)
    strange = said - asked - draft.ground.scripts - {"LATIN"}
    if strange and strange == said:
        yield "The answer is in another script than the question; answer in the question's language."
    elif asked and "LATIN" not in asked and said == {"LATIN"} and languages.scripts(answer).total() >= 20:
        yield "The answer is not in the question's language; answer in the language of the question."
    else:
        asked_in, said_in = languages.guess(question), languages.guess(answer)
        if asked_in and said_in and asked_in != said_in:
            yield f"The answer is in {said_in}; answer in {asked_in}, the language of the question."


CHECKS: tuple[Check, ...] = (
    length,
    answered,
    citation_exists,
    citation_verbatim,
    quotations,
    cited,
    marked,
    numbers,
    names,
    language,
)


def judge(draft: Draft, checks: tuple[Check, ...] = CHECKS) -> Verdict:
    """All faults of all checks."""
    faults = tuple(Fault(check.__name__, what) for check in checks for what in check(draft))
    return Verdict(tuple(check.__name__ for check in checks), faults)


def _line(text: str) -> str:
    return f" {' '.join(words(text))} "


def _runs(answer: str) -> Iterator[str]:
    """Every TAKEN words in a row of the answer."""
    said = words(answer)
    return (f" {' '.join(said[at : at + TAKEN])} " for at in range(len(said) - TAKEN + 1))


def _is_quotation(span: str) -> bool:
    return len(span.split()) >= QUOTED_WORDS or len(_UNSPACED.findall(span)) >= QUOTED_LETTERS


def _said(span: str, ground: Ground) -> bool:
    texts = (*(passage.text for passage in ground.passages), ground.said)
    bare = span.rstrip(".,;:!?。，！？")
    return any(locate(bare, text) is not None for text in texts)


def _bare(found: re.Match[str], text: str) -> str:
    """The name without a first word that may only begin a sentence."""
    name = found[0]
    return name.split(" ", 1)[-1] if _SENTENCE_START.search(text[: found.start()][-8:] or "\n") else name


def _is_known(word: str, ground: Ground) -> bool:
    """Whether the word, or another of its forms, is there: Петрова for Петров, Müllers for Müller."""
    near = ground.names.get(word[:3], set())
    return word in near or any(_same_stem(word, other) for other in near)


def _same_stem(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 3:
        return False
    if longer.startswith(shorter):
        return True
    # Latin names differ by their last letter (Anna, Anne); elsewhere that is an ending.
    stem = shorter[: max(3, len(shorter) - 2)]
    return one[0] > "\u036f" and longer.startswith(stem)
