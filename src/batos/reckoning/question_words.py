"""Cuts a text into folded words, numbers and single East Asian signs, and knows the phrases that they may make.

Three files hold the words: `phrases.toml` those by which questions of nine languages ask for a computation,
`signs.toml` those that cells of any table have, and `written.toml`. A question is computed only if every word of it is
known there or stands in the table, so a word that is missing costs an answer and never makes a wrong one.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from batos.gate import figures


def word_table(name: str) -> dict[str, Any]:
    """Return a table of words of this room."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


#: Phrases without accents, between bars, by language and by what they mean.
PHRASES: Final[dict[str, dict[str, str]]] = word_table("phrases")
_SIGNS: Final = word_table("signs")
#: The concept that a word of a column's name has, and that a unit has; the operation that begins a compound.
CONCEPTS: Final = {word: concept for concept, said in _SIGNS["concepts"].items() for word in said.split()}
MEASURES: Final = {unit: concept for concept, units in _SIGNS["measures"].items() for unit in units.split()}
COMPOUNDS: Final[dict[str, str]] = _SIGNS["compounds"]

#: Phrases around a period in a sentence, by what they say of it; and the names of a letter's own day.
DIRECTIONS: Final = {each: tuple(said.split("|")) for each, said in _SIGNS["directions"].items()}
OWN_DAY: Final[tuple[str, ...]] = tuple(_SIGNS["own_day"].split("|"))


@cache
def signs(name: str) -> frozenset[str]:
    """Return the words of a list of signs."""
    return frozenset(_SIGNS[name].split())


#: The longest phrase that is looked up, in tokens.
LONGEST = 12
_ACCENTS = re.compile("[\u0300-\u036f]")
_EAST = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
_SIGN, _DIGIT = re.compile(f"[{_EAST}]"), re.compile(r"\d")
_WORD = re.compile(rf"[{_EAST}]|[^\W_{_EAST}]+|[%‰€$£¥₹]")
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
    found: list[Word] = []
    covered = 0
    for each in _WORD.finditer(text):
        start, end = max(each.start(), covered), each.end()
        figure = numbers.get(start) if start < end else None
        if figure is not None:
            found.append(Word(figure.text, figure.text, figure.text, figure.start, figure.end, figure))
            start = covered = figure.end
        if start < end:
            word = fold(text[start:end])
            found.append(Word(text[start:end], word, root(word), start, end))
    return found


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


def phrase_at(said: Sequence[Word], at: int, known: dict[tuple[str, ...], str]) -> tuple[int, str]:
    """Return the length and the kind of the longest phrase of a lexicon at a place, (0, "") if there is none."""
    words = tuple(each.word for each in said[at : at + LONGEST])
    found = (words[:length] for length in range(len(words), 0, -1) if words[:length] in known)
    longest = next(found, ())
    return len(longest), known.get(longest, "")


def _phrases(said: Sequence[Word], language: str) -> Iterator[tuple[int, str]]:
    """Yield the length and the kind of each phrase of a question that a lexicon knows."""
    at = 0
    while at < len(said):
        length, kind = phrase_at(said, at, lexicon(language))
        if length:
            yield length, kind
        at += max(length, 1)


def languages(said: Sequence[Word]) -> list[str]:
    """List the languages that know most of the words of a question: the best one, and those that are as good."""
    counts = {language: sum(length for length, _ in _phrases(said, language)) for language in PHRASES}
    most = max(counts.values())
    return [language for language, count in counts.items() if count == most and most]


def kinds_of(said: Sequence[Word], language: str) -> set[str]:
    """Return the kinds of all phrases of a question that a lexicon knows."""
    return {kind for _, kind in _phrases(said, language)}
