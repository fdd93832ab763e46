"""Effort by a question's words: one call, or a council where several points of view are asked for."""

from __future__ import annotations

import re

from batos.memory.terms import words
from batos.routing.features import HEAD, looked_at

_CHARACTER = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u2fff]")

#: Words that ask for everybody, or for several points of view, by language; in any case.
_EVERYBODY = (
    r"all (?:four|4) (?:of you|of your|personas?|voices|minds)",
    r"(?:each|every one) of (?:you (?:four|all)|your (?:four )?(?:personas|voices))",
    r"what (?:does|do|would|did) (?:each|every one|all) of you\b",
    r"(?:your|convene (?:the|a)|summon (?:the|a)|the (?:whole|full|entire)|as a|in full) council\b(?! tax)",
    r"(?:consider|look at|examine|discuss|weigh|analy[sz]e|view)\b.{0,80}\bfrom (?:all|every) (?:sides?|angles?)\b",
    r"from (?:all|every|several|different|multiple|four) (?:possible )?(?:perspectives?|points? of view|viewpoints?)",
    r"(?:several|multiple|four|all) (?:different )?(?:perspectives|points of view|viewpoints) on\b",
    r"(?:want|need|like|give me|hear) (?:several|multiple|different|four) (?:perspectives|points of view|viewpoints)\b",
    r"different (?:perspectives|points of view|viewpoints) on\b",
    r"\b(?:ihr|euch) (?:alle[n]? )?vier|alle vier (?:personas|stimmen|von euch|sichtweisen)|jede[rn]? von euch",
    r"aus (?:allen|verschiedenen|mehreren|vier) (?:blickwinkeln|perspektiven|sichtweisen)",
    r"von allen seiten (?:beleuch|betracht)",
    r"vous (?:êtes )?(?:tous )?(?:les )?quatre|tous les quatre votre|chacun(?:e)? d['’]entre vous",
    r"sous (?:tous les|différents|plusieurs) angles|de tous les points de vue|plusieurs points de vue sur",
    r"(?:vosotr[oa]s|ustedes) (?:los )?cuatro|l[oa]s cuatro (?:junt[oa]s|personas|voces)",
    r"cada un[oa] de (?:vosotros|ustedes)",
    r"desde (?:todos los|varios|distintos|diferentes) (?:ángulos|puntos de vista)",
    r"desde (?:todas las|varias|distintas) perspectivas",
    r"voi quattro|tutti e quattro (?:voi|insieme)|ciascuno di voi|da (?:tutti i|diversi|più) punti di vista",
    r"da (?:tutte le|diverse|più) prospettive|vocês quatro|cada um de vocês",
    r"de (?:todos os|vários|diferentes) (?:ângulos|pontos de vista)",
    r"你们四|四个人格|从(?:各个|各种|多个|不同的?|所有的?)(?:角度|方面|视角)|多角度",
    r"四人(?:全員|みんな|とも)|(?:あらゆる|様々な|さまざまな|複数の|いろいろな)(?:角度|視点|観点)から|多角的に",
    r"(?:तुम|आप) चारों|चारों (?:मिलकर|व्यक्तित्व)|(?:हर|सभी|अलग-अलग) (?:दृष्टिकोण|पहलू|नज़रिए)",
)
_COUNCIL = re.compile("|".join(rf"(?:{each})" for each in _EVERYBODY), re.IGNORECASE)


def asks_for_everybody(text: str) -> str | None:
    """Return the words by which a text asks for all personas or for several points of view, or None."""
    found = _COUNCIL.search(looked_at(text))
    return found[0].strip() if found else None


def size_of(text: str) -> float:
    """Count the words at the head of a text; in a script without blanks two characters count as a word."""
    characters = len(_CHARACTER.findall(text[:HEAD]))
    return characters / 2 if characters else len(words(text[:HEAD]))
