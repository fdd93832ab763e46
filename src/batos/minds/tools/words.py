"""The words of requests for tools, in four languages, and the form in which texts are compared with them."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+|[€$£¥]")


def plain_line(text: str) -> str:
    """Return the words of a text in one line, a blank around each: small letters, no accents.

    >>> plain_line("Où est-ce ?")
    ' ou est ce '
    """
    return f" {' '.join(plain_words(text))} "


def plain_words(text: str) -> list[str]:
    """Return the words of a text in small letters and without accents."""
    return _WORD.findall(plain(text))


def plain(text: str) -> str:
    """Return a text in small letters and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in decomposed if not unicodedata.combining(each))


def read_list(section: str, name: str) -> str:
    """Return a list of the table as it is written."""
    return str(_table()[section][name])


def sections() -> frozenset[str]:
    """Return the names of the sections."""
    return frozenset(_table())


def keys_of(section: str) -> tuple[str, ...]:
    """Return the names of the lists of a section."""
    return tuple(_table()[section])


@lru_cache(maxsize=256)
def phrases(section: str, name: str) -> re.Pattern[str]:
    """Return the pattern of a list's phrases in a line of plain words; group 1 is the phrase."""
    return re.compile(f"(?<= )({'|'.join(_entries(read_list(section, name)))})(?= )")


def is_listed(section: str, name: str, word: str) -> bool:
    """Test if a plain word is one of a list's single words, or begins as one of them does."""
    whole, begun = _single_words(section, name)
    return word in whole or word.startswith(begun)


@lru_cache(maxsize=64)
def _single_words(section: str, name: str) -> tuple[frozenset[str], tuple[str, ...]]:
    entries = [each.strip() for each in read_list(section, name).replace("\n", " ").split(",")]
    single = [each for each in entries if each and " " not in each]
    begun = tuple(each.rstrip("*") for each in single if each.endswith("*"))
    return frozenset(each for each in single if not each.endswith("*")), begun


@lru_cache(maxsize=16)
def beginning(section: str, name: str) -> re.Pattern[str]:
    """Return the pattern of a list's phrases where a line begins."""
    return re.compile(f" (?:{'|'.join(_entries(read_list(section, name)))}) ")


def _entries(text: str) -> Iterator[str]:
    """Yield the pattern of each phrase, the longest first, so that a part of one is not taken for all of it."""
    for entry in sorted((each.strip() for each in text.replace("\n", " ").split(",")), key=len, reverse=True):
        if entry:
            yield r"\w*".join(map(re.escape, entry.split("*"))).replace(r"\ ", " ")


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
