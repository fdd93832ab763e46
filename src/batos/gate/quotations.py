"""Checks that citations, quotations and copied words of an answer stand in a document and are marked as taken."""

from __future__ import annotations

import re
from collections.abc import Iterator

from batos.gate import languages, occurrence
from batos.gate.ground import Draft, Ground, without_spaces
from batos.gate.quotation_search import locate, stands
from batos.memory.terms import words

#: So many words in a row that stand in a document are taken from it; letters where words have no blanks between them.
TAKEN, TAKEN_LETTERS = 8, 24
#: Words from which on what stands in quotation marks is a quotation and not a way of speaking; letters where words
#: have no blanks between them.
QUOTED_WORDS, QUOTED_LETTERS = 4, 10


def _between(opening: str, closing: str, marks: str) -> str:
    """Return a pattern for the text between two marks, without them: with line breaks, but without a blank line."""
    return rf"{opening}((?:[^{marks}\n]|\n(?!\s*\n)){{0,600}}?){closing}"


_QUOTATION = re.compile(
    "|".join(
        (
            _between(r"(?<![\w\"])\"(?=\S)", r"\"(?![\w\"])", '"'),
            _between("“", "”", "“”"),
            _between("„", '[“”"]', '„“”"'),
            _between("«", "»", "«»"),
            _between("»", "«", "«»"),
            _between("‹", "›", "‹›"),
            _between("「", "」", "「」"),
            _between("『", "』", "『』"),
            r"‘((?:[^‘’\n]|(?<=\w)’(?=\w)|\n(?!\s*\n)){0,600}?)’(?!\w)",
            r"(?<![\w'])'(?=\S)((?:[^'\n]|(?<=\w)'(?=\w)){0,400}?)'(?![\w'])",
        )
    )
)
_BLOCK = re.compile(r"(?:^[^\S\n]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_BLOCK_MARK = re.compile(r"^[^\S\n]*>+[^\S\n]?", re.MULTILINE)
#: Characters of a quotation that are looked for; a longer one is told by its beginning.
_LOOKED_AT = 600
#: The source at the end of a quotation.
_TAIL = 160
_SOURCE = re.compile(
    r"(?:\s[—–-]\s?[^\n]{0,120}|\s?[(\[][^()\[\]\n]{0,80}[)\]])\s*\Z|^\s*[—–-]\s?[^\n]{0,120}\Z", re.MULTILINE
)
#: Marks of words left out of a quotation, or put in: the spans between must each be said word for word.
_LEFT_OUT = re.compile(r"\[(?:…|\.\.\.)\]|\((?:…|\.\.\.)\)|…|\.\.\.|\[[^\[\]\n]{0,40}\]")
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,2}|_{1,2}(?!\w)")


def citation_exists(draft: Draft) -> Iterator[str]:
    """Check that every citation, and every document named by its number, exists."""
    named = [citation.document for citation in draft.citations]
    if draft.ground.passages:
        # A document or the question may speak of documents of its own.
        others = set(occurrence.references(draft.ground.text))
        named += [number for number in occurrence.references(draft.answer) if number not in others]
    for number in dict.fromkeys(named):
        if draft.ground.evidence.find(number) is None:
            yield f"There is no document {number}."


def citation_verbatim(draft: Draft) -> Iterator[str]:
    """Check that every citation stands word for word in the document that it names."""
    for citation in draft.citations:
        if draft.ground.evidence.find(citation.document) and not stands(citation, draft.ground.evidence):
            yield f"Document {citation.document} does not say {citation.quote!r}; quote it word for word."


def quotations(draft: Draft) -> Iterator[str]:
    """Check that quoted words of the answer stand word for word in a document, a turn or the question."""
    for span in not_verbatim(draft.answer, draft.ground):
        yield f"No document says {span!r}; quote word for word or drop the quotation marks."


def not_verbatim(answer: str, ground: Ground) -> Iterator[str]:
    """Yield the quoted words of an answer that stand word for word in nothing that it rests on."""
    if not ground.passages:
        return
    for quoted in find_quotations(languages.prose(answer)):
        for span in _LEFT_OUT.split(_EMPHASIS.sub("", quoted)):
            span = span.strip()[:_LOOKED_AT]
            if _is_quotation(span) and not _said(span, ground):
                yield span


def find_quotations(text: str) -> Iterator[str]:
    """Yield the quotations of a text: between quotation marks of any kind, and in lines that begin with `>`."""
    for block in _BLOCK.findall(text):
        bare = _BLOCK_MARK.sub("", block).strip()
        yield f"{bare[:-_TAIL]}{_SOURCE.sub('', bare[-_TAIL:])}"
    for found in _QUOTATION.finditer(_BLOCK.sub("\n", text)):
        yield next(filter(None, found.groups()), "")


def without_quotations(text: str) -> str:
    """Remove the quotations from a text."""
    return _QUOTATION.sub(" ", _BLOCK.sub("\n", text))


def check_marked(draft: Draft) -> Iterator[str]:
    """Check that words copied from a document are marked by a citation of it: documents are not trusted."""
    citing = {citation.document for citation in draft.citations}
    if citing.issuperset(draft.ground.lines):
        return
    said, letters = words(draft.answer), without_spaces(draft.answer)
    runs = [f" {' '.join(said[at : at + TAKEN])} " for at in range(len(said) - TAKEN + 1)]
    spans = [letters[at : at + TAKEN_LETTERS] for at in range(len(letters) - TAKEN_LETTERS + 1)]
    told: set[int] = set()
    for taken, lines in ((runs, {0: draft.ground.said_line, **draft.ground.lines}), (spans, draft.ground.letters)):
        for run in taken:
            holding = [number for number, line in lines.items() if run in line]
            if holding and not told.intersection(holding) and not citing.union((0,)).intersection(holding):
                told.add(holding[0])
                yield f"{run.strip()!r} is taken from document {holding[0]}; cite that document."


def _is_quotation(span: str) -> bool:
    return len(span.split()) >= QUOTED_WORDS or len(without_spaces(span)) >= QUOTED_LETTERS


def _said(span: str, ground: Ground) -> bool:
    """Test if words occur anywhere; a quotation within a sentence may begin with a small letter instead of a
    capital.
    """
    texts = (*(passage.text for passage in ground.passages), ground.said)
    bare = span.strip("“”„«»‹›‘’\"'「」『』 ").rstrip(".,;:!?。，！？、；：")
    first = bare[:1]
    forms = {bare, first.swapcase() + bare[1:]} if len(first.swapcase()) == 1 else {bare}
    return any(locate(form, text) is not None for form in forms for text in texts)
