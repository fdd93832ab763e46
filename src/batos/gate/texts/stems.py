"""Cut a text into the stems of the words that say something, in any script, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from batos.gate.texts import languages
from batos.gate.values import numerals
from batos.memory.common_words import ASKING
from batos.memory.inflections import without_ending
from batos.memory.terms import STEM, placed_terms

_STOP = {language: languages.small_words(language) | frozenset(said.split()) for language, said in ASKING.items()}

_MARKS = ".,'’\u00a0\u202f\u2009"
_NUMBER = re.compile(rf"(?<![\w.,])(?:\d{{1,3}}(?: \d{{3}})+|\d+(?:[{_MARKS}]\d+)+)(?!\w)")
_GROUPS = re.compile(rf"\d{{1,3}}(?:[{_MARKS} ]\d{{3}})+")
_GROUP_MARK = re.compile(f"[{_MARKS} ]")
_PART = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_ARABIC = re.compile("[\u0621-\u064a]")
_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0640]")
_ARABIC_ALIKE = str.maketrans("أإآٱىة", "اااايه")
#: Articles and prepositions that Arabic writes as one word with a noun, and endings; the longest first.
_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ال", "لل")
_ARABIC_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")


@dataclass(frozen=True, slots=True)
class Stem:
    """The stem of a word that says something, and the (start, end) of the word in its text."""

    stem: str
    start: int
    end: int


def placed_stems(text: str, language: str | None) -> Iterator[Stem]:
    """Yield the stems of a text in that language, by its English name, without its small words.

    A number is one stem, however its digits are grouped, in figures or as a word.
    """
    stop = _STOP.get(language or "") or languages.small_words(language)
    numbers = {found.start(): found for found in _NUMBER.finditer(text)}
    far = numerals.placed_chinese(text)
    yield from (Stem(str(value), start, end) for start, end, value in far)
    covered = 0
    for word, start, end in placed_terms(text):
        if start < covered or any(one < end and start < other for one, other, _ in far):
            continue
        if number := numbers.get(start):
            covered = number.end()
            yield from _number_stems(number)
        elif word[0].isdigit() and not word.isascii() and len(word) == end - start:
            yield from _parts(word, start)
        elif word[0].isdigit() or word not in stop:
            yield Stem(_stem(word, language), start, end)


def stems(text: str, language: str | None) -> frozenset[str]:
    """Return the stems of a text in that language, each once.

    >>> sorted(stems("The lamps were automated in 1961, by seven keepers.", "English"))
    ['1961', '7', 'automa', 'keeper', 'lamp']
    """
    return frozenset(each.stem for each in placed_stems(text, language))


def _parts(word: str, start: int) -> Iterator[Stem]:
    """Yield the parts of a word that begins with figures and goes on in a script without blanks: 12月4日发布."""
    for found in _PART.finditer(word):
        part, at = found[0], start + found.start()
        if part.isascii() or len(part) == 1:
            yield Stem(_stem(part, None), at, at + len(part))
        else:
            yield from (Stem(part[each : each + 2], at + each, at + each + 2) for each in range(len(part) - 1))


def is_number(stem: str) -> bool:
    """Test if a stem is a number."""
    return stem[0].isdigit()


def _number_stems(found: re.Match[str]) -> Iterator[Stem]:
    parts = _GROUP_MARK.split(found[0])
    if _GROUPS.fullmatch(found[0]):
        yield Stem("".join(parts), *found.span())
    elif len(parts) == 2:
        yield Stem(".".join(parts), *found.span())
    else:  # a date, or a version
        yield from (Stem(part.lstrip("0") or "0", *found.span()) for part in parts)


@lru_cache(1 << 14)
def _stem(word: str, language: str | None) -> str:
    if word.isdigit():
        return word.lstrip("0") or "0"
    value = numerals.value_of(word, language)
    if value is not None:
        return str(value)
    if _ARABIC.match(word):
        return _arabic_stem(word)
    # The rule is English and the same in each language: the language of a short text is often not clear, and its words
    # must meet those of a longer one.
    return without_ending(word)[:STEM]


def _arabic_stem(word: str) -> str:
    word = _ARABIC_MARKS.sub("", word).translate(_ARABIC_ALIKE)
    prefix = next((each for each in _ARABIC_PREFIXES if word.startswith(each) and len(word) - len(each) > 1), "")
    word = word.removeprefix(prefix)
    if not prefix and word.startswith("و") and len(word) > 4:
        word = word[1:]
    suffix = next((each for each in _ARABIC_SUFFIXES if word.endswith(each) and len(word) - len(each) > 2), "")
    return word.removesuffix(suffix)
