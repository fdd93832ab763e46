"""The words that may leave this machine by a look-up: those of a person's question, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import unquote_plus

from batos.agency.look_ups.web_addresses import parse_address
from batos.image.ownership import DOOR
from batos.memory.segmentation import terms, words
from batos.memory.words_by_language import COMMON
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import ObjectError

#: Letters of an ending, by which forms of a word differ.
_ENDING: Final = 3
#: The words that say nothing: those of every language's sentences, and of addresses.
_ANYBODYS: Final = COMMON | frozenset("http https www html htm php org com net index wiki".split())


def words_of_question(brief: MissionBrief, granted: Iterable[str] = ()) -> frozenset[str]:
    """Return the words of what a mission's person said in its question, and of the values of a grant.

    A question of the mind itself has no words of a person.
    """
    said = [] if brief.origin.door == DOOR else [brief.text]
    said += map(str, brief.message.arguments) if said and brief.message is not None else []
    return frozenset(each for text in (*said, *granted) for each in (*words(text), *terms(text))) | _ANYBODYS


def find_foreign(query: str, own: Collection[str]) -> list[str]:
    """Return the words of a query that are none of these: the person did not say them."""
    return list(dict.fromkeys(word for word in words(query) if not own_word(word, own)))


def own_word(word: str, own: Collection[str]) -> bool:
    """Test if a word is one of these, or one of them with another ending of at most three letters.

    >>> own_word("tides", ["tide"]), own_word("tidehunter", ["tide"]), own_word("tide2", ["tide"])
    (True, False, False)
    """
    if word in own or all(term in own for term in terms(word)):
        return True
    return word.isalpha() and any(_is_form(word, each) for each in own)


def _is_form(word: str, own: str) -> bool:
    same = next((at for at, (one, other) in enumerate(zip(word, own, strict=False)) if one != other), None)
    shared = min(len(word), len(own)) if same is None else same
    return own.isalpha() and shared >= max(_ENDING, len(word) - _ENDING, len(own) - _ENDING)


def find_foreign_in(address: str, own: Collection[str], known: Collection[str]) -> list[str]:
    """Return the words of an address that are none of these; one of the `known` has none."""
    form = str(parse_address(address))
    return [] if form in known else find_foreign(unquote_plus(form.partition("://")[2]).replace("_", " "), own)


def check_text(name: str, value: object, most: int) -> str:
    """Return an argument that is a text. Raises: ObjectError: it is none, or too long."""
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise ObjectError(f"a look-up takes its {name} as a text of 1 to {most:,} characters")
    return value.strip()
