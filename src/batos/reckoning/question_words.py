"""Cuts a text into folded words, numbers and single East Asian signs, so that phrases of both can be looked up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from batos.gate.values import figures
from batos.reckoning.known_phrases import PHRASES

#: The longest phrase that is looked up, in tokens.
LONGEST = 12
_ACCENTS = re.compile("[\u0300-\u036f]")
_SIGNS = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
_SIGN, _DIGIT = re.compile(f"[{_SIGNS}]"), re.compile(r"\d")
_WORD = re.compile(rf"[{_SIGNS}]|[^\W_{_SIGNS}]+|[%‰€$£¥₹]")
#: Endings of plurals and cases, with the letters that must be left of the word.
_ENDINGS = (("ern", 4), ("en", 4), ("er", 4), ("em", 4), ("es", 3), ("s", 3), ("n", 4), ("e", 3))
_VOWELS = "aeio"


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number or sign where it stands: as written, folded, and by its root; a number has its figure."""

    raw: str
    word: str
    root: str
    start: int
    end: int
    figure: figures.Figure | None = None


def fold(text: str) -> str:
    """Return a text without case and accents, compatible forms unified.

    >>> fold("Größe")
    'grosse'
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


@lru_cache(1 << 14)
def root(word: str) -> str:
    """Return a folded word without the ending of a plural or a case.

    >>> root("kettles") == root("kettle"), root("prodotti") == root("prodotto"), root("boxes")
    (True, True, 'box')
    """
    if not word.isalpha() or not "a" <= word[0] <= "z":
        return word
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    for _ in range(2):
        ending = next((each for each, left in _ENDINGS if word.endswith(each) and len(word) - len(each) >= left), "")
        word = word.removesuffix(ending)
    return word[:-1] if len(word) > 4 and word[-1] in _VOWELS else word


def tokens(text: str) -> list[Word]:
    """Return the words, numbers and East Asian signs of a text, in order."""
    text = figures.plain(text)
    # A number right behind an East Asian sign is one too.
    numbers = {each.start: each for each in figures.find(_SIGN.sub("\n", text))} if _DIGIT.search(text) else {}
    return list(_tokens(text, numbers))


def _tokens(text: str, numbers: dict[int, figures.Figure]) -> Iterator[Word]:
    covered = 0
    for found in _WORD.finditer(text):
        start, end = found.span()
        start = max(start, covered)
        if start >= end:
            continue
        figure = numbers.get(start)
        if figure is not None:
            covered = figure.end
            yield Word(figure.text, figure.text, figure.text, figure.start, figure.end, figure)
            start = figure.end
            if start >= end:
                continue
        raw = text[start:end]
        word = fold(raw)
        yield Word(raw, word, root(word), start, end)


def key(text: str, by_root: bool = True) -> tuple[str, ...]:
    """Return the words of a text as a phrase: by their roots, or as they are folded; a number by its groups."""
    words = [fold(each) for each in _WORD.findall(figures.plain(text))]
    return tuple(map(root, words)) if by_root else tuple(words)


def phrase(said: Sequence[Word], by_root: bool = True) -> tuple[str, ...]:
    """Return tokens as a phrase, as `key` does."""
    if any(each.figure is not None for each in said):
        return key(" ".join(each.raw for each in said), by_root)
    return tuple(each.root if by_root else each.word for each in said)


@cache
def lexicon(language: str) -> dict[tuple[str, ...], str]:
    """Return the phrases of a language with what each means."""
    return {
        tuple(each.word for each in tokens(phrase)): kind
        for kind, phrases in reversed(PHRASES[language].items())
        for phrase in phrases.split("|")
    }


def languages(said: Sequence[Word]) -> list[str]:
    """List the languages that know most of the words of a question: the best one, and those that are as good."""
    counts: dict[str, int] = {}
    for language in PHRASES:
        known = lexicon(language)
        covered = 0
        count = 0
        for at in range(len(said)):
            if at >= covered and (length := longest(said, at, known)):
                covered, count = at + length, count + length
        counts[language] = count
    most = max(counts.values(), default=0)
    return [language for language, count in counts.items() if count == most and most]


def longest(said: Sequence[Word], at: int, known: dict[tuple[str, ...], str]) -> int:
    """Return how many tokens from a place on make the longest phrase of a lexicon; 0 if none does."""
    words = tuple(each.word for each in said[at : at + LONGEST])
    return next((length for length in range(len(words), 0, -1) if words[:length] in known), 0)


def kinds_of(said: Sequence[Word], language: str) -> set[str]:
    """Return the kinds of all phrases of a question that a lexicon knows."""
    known, found, at = lexicon(language), set[str](), 0
    while at < len(said):
        length = longest(said, at, known)
        found |= {known[tuple(each.word for each in said[at : at + length])]} if length else set()
        at += max(length, 1)
    return found
