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
from batos.protocol.errors import ObjectError, Refused

#: The most words that a refusal names.
_NAMED: Final = 5
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


def check_query(query: str, own: Collection[str], how: str) -> None:
    """Check that a query is made of these words alone; `how` is the line by which a person may send it himself.

    Raises: Refused: it has words that the person did not say in this question.
    """
    found = [word for word in words(query) if not own_word(word, own)]
    if found:
        named = ", ".join(dict.fromkeys(word[:40] for word in found[:_NAMED]))
        what = f"the look-up would send words that are not of your question: {named}"
        raise Refused(what, field="query", remedy=f"If that is meant, send it yourself: {how}")


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


def check_address(address: str, own: Collection[str], known: Collection[str], how: str) -> None:
    """Check that an address is one of the `known`, or made of these words alone. Raises: Refused: it is neither."""
    form = str(parse_address(address))
    if form not in known:
        check_query(unquote_plus(form.partition("://")[2]).replace("_", " "), own, how)


def check_text(name: str, value: object, most: int) -> str:
    """Return an argument that is a text. Raises: ObjectError: it is none, or too long."""
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise ObjectError(f"a look-up takes its {name} as a text of 1 to {most:,} characters")
    return value.strip()
