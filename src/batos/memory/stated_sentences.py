"""Finds what a person states beside what they ask: the sentences of a question that may be evidence later."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from batos.memory.sentences import sentence_spans
from batos.memory.terms import line_of, terms, words

#: The terms that a statement has at least.
LEAST_TERMS: Final = 3

_ASKED: Final = re.compile(r"\A\s*[¿(（\[]|[?？؟][\"'”’»)\]」』]*\s*\Z")


class _Signs(NamedTuple):
    """The signs of a question, a request or an order, of all languages."""

    openers: frozenset[str]
    polite: frozenset[str]
    unspaced: re.Pattern[str]


@lru_cache(maxsize=1)
def _signs() -> _Signs:
    listed = tomllib.loads(files(__package__).joinpath("stated_sentences.toml").read_text(encoding="utf-8"))
    openers, polite = (
        frozenset(word for table in listed.values() for word in table.get(key, "").split())
        for key in ("openers", "polite")
    )
    ends = [(table["opening"], table["closing"]) for table in listed.values() if "opening" in table]
    unspaced = "|".join(rf"\A\s*(?:{opening})|(?:{closing})\s*\Z" for opening, closing in ends)
    return _Signs(openers, polite, re.compile(unspaced))


def statements_of(text: str) -> Iterator[str]:
    """Yield the sentences of a person's message that state something, in order: no questions, requests or orders.

    >>> list(statements_of("My cat is called Miso. She is four. What may she eat?"))
    ['My cat is called Miso.', 'She is four.']
    >>> list(statements_of("Please tell me about tides."))
    []
    """
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        if _states(sentence):
            yield sentence


def _states(sentence: str) -> bool:
    signs = _signs()
    if _ASKED.search(sentence) or signs.unspaced.search(sentence) or len(list(terms(sentence))) < LEAST_TERMS:
        return False
    return next((word for word in words(sentence) if word not in signs.polite), "") not in signs.openers


def repeats(question: str, text: str) -> bool:
    """Test if every sentence of a text is one of a question, word for word: then it tells nothing that was not said.

    >>> repeats("I lost my key. What now?", "I lost my key."), repeats("Did I lose it?", "I lost my key.")
    (True, False)
    """
    asked, told = ({line_of(each[start:end]) for start, end in sentence_spans(each)} for each in (question, text))
    return told <= asked and bool(words(text))
