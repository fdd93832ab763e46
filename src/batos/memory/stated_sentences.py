"""Finds what a person states beside what they ask: the sentences of a question that may be evidence later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from batos.memory.sentences import sentence_spans
from batos.memory.terms import terms, words

#: The terms that a statement has at least.
LEAST_TERMS: Final = 3

_ASKED = re.compile(r"\A\s*[¿(（\[]|[?？؟][\"'”’»)\]」』]*\s*\Z|(?:吗|呢|か)[。！]?\s*\Z")
#: The first words of a question or of a request, in the languages that have a table.
_OPENERS: Final = frozenset(
    # English
    "what who whom whose which when where why how is are was were do does did can could will would should shall may"
    " tell give explain describe list write summarise summarize compare show find make translate help let draft name"
    " suggest recommend calculate count check define compute answer say read use look continue go try quote"
    # German
    " wer was wann wo warum wieso wie welche welcher welches wem wen sind ist kann kannst könntest erkläre erklär"
    " beschreibe nenne schreib schreibe zeige zeig fasse gib hilf übersetze vergleiche sage sag"
    # French
    " qui que quoi quand où pourquoi comment quel quelle quels quelles est explique décris écris donne montre résume"
    " traduis dis"
    # Spanish, Italian, Portuguese
    " qué quién cuándo dónde cómo cuál cuáles explica describe escribe dame muestra resume traduce dime chi che cosa"
    " quando dove perché come quale quali spiega descrivi scrivi dammi mostra riassumi traduci dimmi quem qual quais"
    " onde porque descreva escreva mostre traduza diga"
    # Dutch
    " wie wat wanneer waar waarom hoe welk leg beschrijf schrijf geef toon vertaal vergelijk zeg"
    # Russian
    " кто что когда где почему зачем как какой какая какие расскажи объясни опиши напиши покажи переведи".split()
)
#: Words before the first one that counts.
_POLITE: Final = frozenset(
    "please bitte now so and but then also ok okay hi hello hey thanks und aber et y e en".split()
)


def statements_of(text: str) -> Iterator[str]:
    """Yield the sentences of a person's message that state something, in order: neither questions nor requests.

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
    if _ASKED.search(sentence) or len(list(terms(sentence))) < LEAST_TERMS:
        return False
    return next((word for word in words(sentence) if word not in _POLITE), "") not in _OPENERS
