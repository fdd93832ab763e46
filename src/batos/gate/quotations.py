"""Checks that the quotations of an answer occur word for word in its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from batos.gate.ground import Draft, Ground, Spot, without_spaces
from batos.gate.quotation_search import locate
from batos.gate.texts import languages

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


def quotations(draft: Draft) -> list[Spot] | None:
    """Check that quoted words of the answer stand word for word in a document, a turn or the question."""
    quoted = draft.ground.passages and any(map(_is_quotation, find_quotations(languages.prose(draft.answer))))
    return [Spot("quotation", span) for span in not_verbatim(draft.answer, draft.ground)] if quoted else None


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
