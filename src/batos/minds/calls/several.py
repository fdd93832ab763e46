"""Tests if a question holds several things to ask, by its marks and small words: a small model divides no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from batos.gate.texts import languages
from batos.memory.sentences import sentence_spans
from batos.memory.terms import words

#: Words that join, and words that ask, by language. Russian is known by its letters.
_JOIN: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(listed.split())
    for language, listed in {
        "English": "and or plus",
        "German": "und oder sowie",
        "French": "et ou",
        "Spanish": "y e o u",
        "Italian": "e ed o",
        "Portuguese": "e ou",
        "Dutch": "en of",
        "Swedish": "och eller samt",
        "Danish or Norwegian": "og eller samt",
        "Polish": "i oraz lub",
        "Czech": "a nebo",
        "Russian": "и или а",
    }.items()
}
_ASK: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(listed.split())
    for language, listed in {
        "English": "who whom whose what which when where why how",
        "German": "wer wen wem wessen was wann wo woher wohin warum weshalb wieso wie welche welcher welches welchen"
        " welchem wieviel wieviele",
        "French": "qui que quoi quel quelle quels quelles quand où pourquoi comment combien",
        "Spanish": "quién quiénes qué cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas",
        "Italian": "chi che cosa quale quali quando dove perché come quanto quanta quanti quante",
        "Portuguese": "quem que qual quais quando onde porque como quanto quanta quantos quantas",
        "Dutch": "wie wat welke welk wanneer waar waarom hoe hoeveel",
        "Swedish": "vem vad vilken vilket vilka när var varför hur",
        "Danish or Norwegian": "hvem hva hvad hvilken hvilket hvilke når hvornår hvor hvorfor hvordan",
        "Polish": "kto co jaki jaka jakie który która które kiedy gdzie dlaczego jak ile",
        "Czech": "kdo co jaký jaká jaké který která které kdy kde proč jak kolik",
        "Russian": "кто что какой какая какое какие когда где куда почему зачем как сколько",
    }.items()
}
#: Words that join in a language that is not known: those that are no small word of another kind elsewhere.
_JOINS_ANY: Final = frozenset("and or und oder sowie et ou och eller og samt oraz lub nebo или".split())
#: Words that ask, in Chinese and Japanese.
_EASTERN: Final = re.compile(
    "什么|什麼|甚麼|谁|誰|哪|何时|何時|几|幾|多少|为何|为什么|為什麼|怎么|怎麼|怎样|如何|なぜ|どう|どこ|どの|いつ|何|いくら|いくつ"
)
#: Marks within a text behind which a further thing is asked.
_INNER: Final = re.compile(r"[?？؟;；](?=.*\w)|\n\s*\S", re.DOTALL)


def asks_several(text: str) -> bool:
    """Test if a text asks for more than one thing.

    Several sentences and a mark of a question inside are signs of it. So is a word that joins, if a word that asks
    stands behind it, or none in the text: then the text is an order, or its language is not known.

    >>> asks_several("Who wound the lamp and when was it lit?"), asks_several("Who wound the lamp and the clock?")
    (True, False)
    """
    bare = text.strip()
    if len(sentence_spans(bare)) > 1 or _INNER.search(bare):
        return True
    language = languages.guess(bare) or ("Russian" if "CYRILLIC" in languages.main_scripts(bare) else "")
    if language in ("Chinese", "Japanese"):
        return len(_EASTERN.findall(bare)) > 1
    said, joins, asks = words(bare), _JOIN.get(language, _JOINS_ANY), _ASK.get(language, frozenset())
    first = next((place for place, word in enumerate(said) if place and word in joins), None)
    if first is None:
        return False
    return not asks.intersection(said) or not asks.isdisjoint(said[first:])
