"""Reads sentences that give a subject the value of an attribute, and nothing more: where it lives, its name, its size.

Such a fact can be noted as it stands. A sentence with any other word, which may tell of a feeling, a
problem or a wish, is not read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from batos.memory.terms import words

Attribute: TypeAlias = Literal["residence", "origin", "work", "name", "value", "is", "allergy"]
ATTRIBUTES: Final[tuple[Attribute, ...]] = ("residence", "origin", "work", "name", "value", "is", "allergy")

#: Characters of the longest sentence that is read.
LONGEST: Final = 200
_UNSPACED: Final = frozenset({"Chinese", "Japanese"})
#: The value of a template by its mark: the name of its group, and what it may be.
_SPACED_VALUES: Final = {mark: rf"(?P<{mark}>\S.{{0,90}}?)" for mark in "vnw"}
_UNSPACED_VALUES: Final = {mark: rf"(?P<{mark}>[^，。、,;；!！?？\s]{{1,20}}?)" for mark in "vnw"}
_FIGURE: Final = re.compile(r"\d|[一二三四五六七八九十百千万两]")
_TOKEN: Final = re.compile(r"[^\s,;()\"“”„«»]+")
#: The words of the longest value in plain words.
_MOST_WORDS: Final = 4
_END: Final = re.compile(r"[.。]?\s*\Z")


class GivenFact(NamedTuple):
    """A subject, the attribute of which it is given a value, and the language in which this is said."""

    subject: str
    attribute: Attribute
    value: str
    language: str
    #: The subject is who speaks.
    is_self: bool


class _Language(NamedTuple):
    """The patterns of a language, and its words."""

    name: str
    patterns: tuple[tuple[Attribute, re.Pattern[str]], ...]
    small: frozenset[str]
    days: frozenset[str]
    unless: frozenset[str]
    lead: re.Pattern[str]
    tail: re.Pattern[str]

    def read(self, sentence: str, wanted: Collection[Attribute]) -> GivenFact | None:
        for attribute, pattern in self.patterns:
            found = pattern.fullmatch(sentence) if attribute in wanted else None
            if found is not None and not self._says_more(sentence):
                mark = next(each for each in "vnw" if found.groupdict().get(each))
                if self._is_value(found[mark], mark):
                    subject = (found["s"] or found["self"] or "").strip()
                    return GivenFact(subject, attribute, found[mark].strip(), self.name, not found["s"])
        return None

    def _says_more(self, sentence: str) -> bool:
        if self.name in _UNSPACED:
            return any(each in sentence for each in self.unless)
        return not self.unless.isdisjoint(words(sentence))

    def _is_value(self, text: str, mark: str) -> bool:
        if self.name in _UNSPACED:
            return mark != "n" or bool(_FIGURE.search(text) or any(each in text for each in self.days))
        tokens = [each.strip(".:") for each in _TOKEN.findall(text)]
        if mark == "w":
            return 0 < len(tokens) <= _MOST_WORDS and all(each.isalpha() for each in tokens)
        return self._is_named_or_counted(tokens, named=mark == "v")

    def _is_named_or_counted(self, tokens: list[str], *, named: bool) -> bool:
        """Test if tokens are a name or a figure, with small words, and a unit behind a figure."""
        has_value, before = False, ""  # what stands before a token: a figure, a unit, or another word
        for token in filter(None, tokens):
            is_count = bool(_FIGURE.search(token))
            if before == "unit" and is_count:
                return False  # a calculation
            if is_count or token.casefold() in self.days or (named and token[:1].isupper()):
                has_value, before = True, "figure" if is_count else ""
            elif token.casefold() in self.small or token[:1].isupper():
                before = ""
            elif before == "figure":
                before = "unit"
            else:
                return False
        return has_value


def facts_in(message: str, sentences: list[str]) -> list[GivenFact]:
    """Return the facts of a message if each of its sentences gives one, or only asks to note them; else nothing."""
    found: list[GivenFact] = []
    for language in _languages():
        several = [language.tail.sub("", each.strip()) for each in sentences]
        facts = [language.read(_bare(language.lead.sub("", each)), ATTRIBUTES) for each in several if _bare(each)]
        given = [each for each in facts if each is not None]
        if len(given) == len(facts) > len(found):
            found = given
    return found if message.strip() else []


def read(sentence: str, wanted: Collection[Attribute] = ATTRIBUTES) -> GivenFact | None:
    """Return the fact that a sentence gives, None where it gives none of those wanted, or says more.

    >>> read("My sister moved to Hamburg.")[:3], read("My sister moved to Hamburg and I miss her.")
    (('My sister', 'residence', 'Hamburg'), None)
    """
    if len(sentence) > LONGEST:
        return None
    bare = _bare(sentence)
    return next((found for each in _languages() if (found := each.read(bare, wanted)) is not None), None)


def _bare(sentence: str) -> str:
    return _END.sub("", sentence.strip())


@lru_cache(maxsize=1)
def _languages() -> tuple[_Language, ...]:
    listed = tomllib.loads(files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8"))
    return tuple(_language(name, table) for name, table in listed.items())


def _language(name: str, table: Mapping[str, Any]) -> _Language:
    small, days, unless = (frozenset(table[key].split()) for key in ("small", "days", "unless"))
    gap = "" if name in _UNSPACED else r"(?:\s+|(?<=['’]))"
    own = table["self"]
    lead = re.compile(rf"\A\s*(?:{table['lead']})[\s,:，：、]*", re.IGNORECASE)
    tail = re.compile(rf"[\s,;，；、–—-]*(?:{table['tail']})\s*[.。!！]?\s*\Z", re.IGNORECASE)
    subject = rf"(?:(?P<s>{table['subject']}){gap}|(?P<self>{own.strip('|')}){gap}{'|' if own.endswith('|') else ''})"
    return _Language(name, tuple(_patterns(name, table, subject)), small, days, unless, lead, tail)


def _patterns(name: str, table: Mapping[str, Any], subject: str) -> Iterator[tuple[Attribute, re.Pattern[str]]]:
    values = _UNSPACED_VALUES if name in _UNSPACED else _SPACED_VALUES
    for attribute in ATTRIBUTES:
        for template in table.get(attribute, ()):
            said = template
            for mark, value in values.items():
                said = said.replace(f"{{{mark}}}", value)
            yield attribute, re.compile(f"{subject}{said}", re.IGNORECASE)
