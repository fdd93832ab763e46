"""Words by language: the small ones, the names of months, and the other endings that a word may have."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from batos.memory.segmentation import STEM, stems, terms, words

_READ: Final = tomllib.loads(files(__package__).joinpath("words_by_language.toml").read_text(encoding="utf-8"))
#: English, German, French, Spanish and Italian, folded.
COMMON: Final = frozenset(" ".join(_READ["common"]).split())
#: The terms of these as indexes hold them.
COMMON_STEMS: Final = frozenset(stem for word in COMMON for stem in stems(word))
#: Words of each language that ask, help another verb or point.
ASKING: Final[Mapping[str, str]] = {language: " ".join(said) for language, said in _READ["asking"].items()}
_ASKING: Final = {language: frozenset(said.split()) | COMMON for language, said in ASKING.items()}


def asking_stems(text: str) -> frozenset[str]:
    """Return the stems of those words of a question that only ask, help or point in its language.

    The language is that of which it has most of them.

    >>> sorted(asking_stems("When did the war end?"))
    ['did', 'the', 'when']
    """
    said = [frozenset(words(text)) & each for each in _ASKING.values()]
    most = max(map(len, said))
    return frozenset(stem for each in said if len(each) == most for word in each for stem in stems(word))


#: The number of each month by its names.
MONTH: Final = {word: number for number, said in enumerate(_READ["months"], start=1) for word in said.split()}
#: A pattern of all names.
NAME: Final = "|".join(sorted(MONTH, key=len, reverse=True))
#: Names of months that are other words where they are not capitalised.
CAPITALISED: Final = frozenset({"may", "march", "mar", "sept", "dec", "set", "gen", "august"})

_FORMS: Final = re.compile(
    r"(?<![\d.-])\d{4}-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>\d\d))?(?![\d-])"
    r"|(?<!\d)\d{4}(?P<m2>0[1-9]|1[0-2])(?P<d2>[0-3]\d)(?=T\d|\b)"
    r"|(?<![\d.])(?P<d3>[0-3]?\d)\.\s?(?P<m3>0?[1-9]|1[0-2])\.(?:\s?\d{2,4})?(?!\d)"
    rf"|(?:(?<!\d)(?P<d4>\d{{1,2}})(?:st|nd|rd|th|er|º|ª|\.)?\s(?:of\s|de\s)?)?(?<!\w)(?P<name>{NAME})\b\.?"
    r"(?:\s(?P<d5>\d{1,2})(?:st|nd|rd|th)?(?![\d:]))?",
    re.IGNORECASE,
)
_GROUPS: Final = (("m", "d"), ("m2", "d2"), ("m3", "d3"))


def months_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield each month and each day of a month that a text names, in one notation, with the word for it.

    >>> list(months_in("Paid on 2 May; 2026-02.")), list(months_in("You may go."))
    ([('~05', 'May'), ('~05-2', '2'), ('~02', '02')], [])
    """
    for found in _FORMS.finditer(text):
        name = found["name"]
        if name is None:
            written, day = next((found[m], found[d]) for m, d in _GROUPS if found[m])
            month = int(written)
        elif name in CAPITALISED:
            continue
        else:
            month, written, day = MONTH[name.casefold()], name, found["d4"] or found["d5"]
        yield f"~{month:02}", written
        if day:
            yield f"~{month:02}-{int(day)}", day


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
