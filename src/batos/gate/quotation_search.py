"""Finds a quotation in a passage: word for word, however its quotes, dashes and line breaks are typed."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

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
    """Return a pattern for a word that a line's end may break: after a hyphen, or anywhere in scripts without
    blanks.
    """
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
