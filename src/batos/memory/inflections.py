"""Tells the forms of a word: the other endings that it may have in the languages of a table, and its bare form."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from batos.memory.common_words import COMMON_STEMS, asking_stems
from batos.memory.months import months_in
from batos.memory.terms import STEM, stems, terms

#: Letters before an ending, at least: of shorter words too many that have nothing to do with one another are alike.
LEAST_ENGLISH, LEAST_STEM = 3, 4
#: Words whose forms are kept.
_KNOWN: Final = 8_192
_UMLAUTS: Final = {"a": "ä", "o": "ö", "u": "ü", "ä": "a", "ö": "o", "ü": "u"}
_ENGLISH: Final = ("", "s", "es", "e", "ed", "ing")


def without_ending(word: str) -> str:
    """Cut the endings of a plural and of a verb: trims, trimmed and trimming are trim, carried and carry are one.

    The rule is English.

    >>> [without_ending(word) for word in ("trimming", "carried", "costs")]
    ['trim', 'carry', 'cost']
    """
    if len(word) > 3 and word.endswith("s"):
        word = word[:-1]
    ending = next((each for each in ("ing", "ed", "e") if word.endswith(each) and len(word) - len(each) > 2), "")
    word = word.removesuffix(ending)
    if len(ending) > 1 and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return f"{word[:-1]}y" if ending and word.endswith("i") else word


@dataclass(frozen=True, slots=True)
class WantedWords:
    """The words of a question by their stems, and to which of them each stem of a text belongs as a form of it.

    Those that are `asking` say nothing of what is asked for.
    """

    stem_of: Mapping[str, str]
    asking: frozenset[str] = frozenset()

    @property
    def forms(self) -> dict[str, list[str]]:
        """Return the stems of the forms of each word, by its own stem."""
        found: dict[str, list[str]] = {stem: [] for stem in self.stem_of.values()}
        for form, stem in self.stem_of.items():
            found[stem].append(form)
        return found

    def find_in(self, text: str) -> frozenset[str]:
        """Return those of the words that a text has in any form."""
        return frozenset(self.stem_of[each] for each in searched_stems(text) if each in self.stem_of)


def wanted_words(question: str) -> WantedWords:
    """Return the words of a question; two forms of one word are one, as is a day in another notation.

    >>> wanted_words("Who renewed it?").find_in("Renew the pass.")
    frozenset({'renewe'})
    """
    stem_of: dict[str, str] = {}
    for term in terms(question):
        own = next(stems(term))
        if own not in stem_of:
            fresh = {form: own for form in stems_of_forms(term) if form not in stem_of}
            stem_of |= {own: own, **fresh}
    for part in _parts(question):
        stem_of.setdefault(part, part)
    for named, word in months_in(question):
        own = next(stems(word))
        stem_of[named] = stem_of.get(own, named)
    return WantedWords(stem_of, asking_stems(question))


def searched_stems(text: str) -> Iterator[str]:
    """Yield the stems of a text, those of the parts of names with `_` in them, and its months and days.

    >>> list(searched_stems("used_kwh 2026-02"))
    ['used_kwh', '2026', '02', 'used', 'kwh', '~02']
    """
    yield from stems(text)
    yield from _parts(text)
    yield from (named for named, _ in months_in(text))


def _parts(text: str) -> Iterator[str]:
    if "_" in text:
        for term in terms(text):
            yield from stems(term.replace("_", " ")) if "_" in term else ()


@lru_cache(maxsize=_KNOWN)
def stems_of_forms(word: str) -> frozenset[str]:
    """Return the stems (of `terms.stems`) of all forms that a folded word may have, its own among them.

    The language does not matter, since that of a question of a few words is often not clear.

    >>> "renew" in stems_of_forms("renewed"), "kosten" in stems_of_forms("kostet")
    (True, True)
    """
    own = word[:STEM] if word.isalpha() else word
    if own in COMMON_STEMS or not word.isalpha():
        return frozenset({own})
    found = frozenset(each[:STEM] for each in (*_english(word), *_by_table(word)))
    return found - COMMON_STEMS | {own}


def _english(word: str) -> Iterator[str]:
    """Yield the forms that `without_ending` makes one word of."""
    root = without_ending(word)
    if len(root) < LEAST_ENGLISH or not word.isascii():
        return
    yield from (root + ending for ending in _ENGLISH)
    if root.endswith("y"):
        yield from (root[:-1] + ending for ending in ("ie", "ies", "ied", "iing"))
    else:
        yield from (root + root[-1] + ending for ending in ("ed", "ing"))


def _by_table(word: str) -> Iterator[str]:
    for language, lines in _table().items():
        for endings in lines:
            for ending in endings:
                root = word.removesuffix(ending)
                if word.endswith(ending) and len(root) >= LEAST_STEM:
                    yield from (root + other for other in endings)
                    if language == "German":
                        yield from (other for each in endings for other in _with_umlaut(root, each))


def _with_umlaut(root: str, ending: str) -> Iterator[str]:
    """Yield a German form whose last vowel is another: Haus and Häuser, Vertrag and Verträge."""
    at = max(root.rfind(vowel) for vowel in _UMLAUTS)
    at -= root[at - 1 : at + 1] in {"au", "äu"}
    if at >= 0:
        yield root[:at] + _UMLAUTS[root[at]] + root[at + 1 :] + ending


@lru_cache(maxsize=1)
def _table() -> Mapping[str, list[list[str]]]:
    """Return the endings that take each other's place, by language."""
    read = tomllib.loads(files(__package__).joinpath("inflections.toml").read_text(encoding="utf-8"))
    return {
        language: [["" if each == "-" else each for each in line.split()] for line in lines]
        for language, lines in read.items()
    }
