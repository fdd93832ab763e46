"""Checks that the quotations of an answer occur word for word in its evidence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from batos.gate import languages
from batos.gate.ground import Draft, Ground, Spot, without_spaces

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
    """Test if words occur anywhere; a quotation within a sentence may begin with a small letter."""
    texts = (*(passage.text for passage in ground.passages), ground.said)
    bare = span.strip("“”„«»‹›‘’\"'「」『』 ").rstrip(".,;:!?。，！？、；：")
    first = bare[:1]
    forms = {bare, first.swapcase() + bare[1:]} if len(first.swapcase()) == 1 else {bare}
    return any(locate(form, text) is not None for form in forms for text in texts)


# -- finds a quotation word for word, however its quotes, dashes and line breaks are typed


# Characters around a quotation, not in it.
_AROUND = ' \t\r\n"“”„«»‹›‘….'
_ALIKE = ("'’‘ʼ´`", '"“”„«»', "-‐‑–—−")
_VARIANTS = {character: f"[{re.escape(kinds)}]" for kinds in _ALIKE for character in kinds}
_CLUSTER = re.compile("[\u0300-\u036f]+|[^\u0300-\u036f][\u0300-\u036f]*")
# Characters within a word that a line's end or an invisible mark broke, as in passages of a PDF.
_INVISIBLE = "[\u00ad\u200b\u2060\ufeff]*"
_TORN, _TURNED = rf"{_INVISIBLE}(?:-\n[ \t]*)?", r"(?:\n[ \t]*)?"
# Behind these, and before a colon, a blank may be one that broke a mark of a chat template (inference/marks.py).
_PARTED = "<[#@~|"
_GROUP = re.compile(r"\d[.,]\Z")
_LETTER = re.compile(r"[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A citation as a method gives it: the number of a document and what it is said to say."""

    document: int
    quote: str


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """Return the place of a quotation in a text as (start, end), whole words only; None if it does not occur.

    Typography may differ: kinds of quotes, apostrophes, dashes, blanks, composed accents, words broken at a line's end,
    and quotes or dots around the whole. Letters may not differ, and no word may be left out.
    """
    bare = quote.strip(_AROUND)
    if quote.lstrip().startswith("‘"):
        bare = bare.removesuffix("’").rstrip(_AROUND)
    if not bare.split():
        return None
    start = text.find(bare)
    if start >= 0 and _whole(text, start, start + len(bare)):
        return start, start + len(bare)
    found = re.search(_pattern(bare), text)
    return found.span() if found else None


def _whole(text: str, start: int, end: int) -> bool:
    """Test if neither a word nor a number is cut at either end."""
    before = text[max(0, start - 2) : start]
    cut = _inside(before[-1:], text[start]) or _inside(text[end - 1], text[end : end + 1])
    return not (cut or (text[start].isdigit() and _GROUP.search(before)))


def _inside(before: str, after: str) -> bool:
    return bool(_LETTER.match(before) and _LETTER.match(after))


def _pattern(bare: str) -> str:
    words = bare.replace("...", "…").split()
    body = _breakable_pattern(words[0])
    for before, word in pairwise(words):
        body += rf"\s{'*' if before[-1] in _PARTED or word[0] == ':' else '+'}{_breakable_pattern(word)}"
    begin = r"(?<!\w)(?<!\d[.,])" if words[0][0].isdigit() else r"(?<!\w)" if _LETTER.match(words[0]) else ""
    end = r"(?!\w)" if _LETTER.match(words[-1][-1]) else ""
    return f"{begin}{body}{end}"


def _breakable_pattern(word: str) -> str:
    """Return a pattern for a word that a line's end may break: after a hyphen, or anywhere without blanks."""
    clusters = _CLUSTER.findall(word)
    body = _either(clusters[0])
    for before, after in pairwise(clusters):
        if before[0] in _ALIKE[2] or not (before[0].isdigit() or _LETTER.match(before)):
            body += _TURNED
        elif before[0].isalpha() and _LETTER.match(after):
            body += _TORN
        body += _either(after)
    return body


@lru_cache(4096)
def _either(letter: str) -> str:
    """Return a pattern for a letter with its accents, in every way to type it."""
    if letter in _VARIANTS:
        return _VARIANTS[letter]
    if letter == "…":
        return r"(?:…|\.\.\.)"
    forms = sorted({letter, unicodedata.normalize("NFC", letter), unicodedata.normalize("NFD", letter)})
    return re.escape(letter) if len(forms) == 1 else f"(?:{'|'.join(map(re.escape, forms))})"
