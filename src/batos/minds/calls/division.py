"""The division of a question into sub-queries for the parts: one short request, and the check of its reply.

A capable model is asked for one sub-query a part. A small model is asked for two, and only if the question holds
several things to ask; the parts before the last two are given the question itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from batos.gate.texts import languages
from batos.inference.decisions.schema import Decision
from batos.memory.sentences import sentence_spans
from batos.memory.terms import words
from batos.minds import prompt
from batos.minds.calls import decisions, degenerate
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext
from batos.minds.question_kind import kind_of

#: Stands for the question where only the words of the request are wanted; no request has it.
_NOTHING: Final = "\ufffc"
#: Sub-queries that a small model is asked for.
LEAN_PARTS: Final = 2
#: The reasons for which no model is asked: of a small one, and of any.
ONE_THING: Final = "the question holds one thing to ask"
NO_QUESTION: Final = "it is not a question"
#: A sub-query has so many words of the question, none of them small, or the question is shown behind it.
LEAST_WORDS: Final = 2
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


def reason_for_whole(context: MindContext, parts: int) -> str:
    """Return the reason why a question is not divided at all, without asking; "" if the model is asked.

    A feeling, a wish or an order is no question: its parts would ask the model about the asker.
    """
    asked = context.mind.question
    if kind_of(asked) != "fact" and not degenerate.asks(asked):
        return NO_QUESTION
    if context.mind.voice.form == "full" or (parts >= LEAN_PARTS and asks_several(context.mind.question)):
        return ""
    return ONE_THING


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


def shape(context: MindContext, parts: int) -> Decision[BaseModel]:
    """Return the shape of the reply."""
    if context.mind.voice.form == "full":
        return decisions.decomposition(parts)
    return decisions.decomposition(LEAN_PARTS, decisions.SHORT_QUERY)


def assign(context: MindContext, slots: Sequence[str], value: BaseModel) -> dict[str, str]:
    """Return the query of each slot: the last ones get the sub-queries, any others the question itself.

    A sub-query that has lost what it asks about ("Within what time?") is followed by the question.
    """
    asked = " ".join(context.mind.question.split())
    divided = [
        each if degenerate.common_words(each, asked) >= LEAST_WORDS else f"{each} ({asked})"
        for each in decisions.sub_queries(value)
    ]
    whole = [context.mind.question] * (len(slots) - len(divided))
    return dict(zip(slots, (*whole, *divided), strict=True))


def question_of(context: MindContext, pillars: Sequence[tuple[str, str, str]]) -> Question:
    """Return the question that asks for the sub-queries; pillars are (slot, name, inspiration).

    A reply that copies names, examples or the request, or whose parts are alike or no questions, is of no use. Nor is,
    from a small model, a part that has no word of the question.
    """
    voice, asked = context.mind.voice, context.mind.question
    request = prompt.decompose_task(voice, _NOTHING, pillars)
    shown = "\n".join((request.text, request.alone, *(text for each in request.examples for text in each)))
    labels = [label for pillar in pillars for label in pillar]

    def fault(value: Any) -> str:
        texts = decisions.sub_queries(value)
        found = degenerate.fault(texts, asked, shown, labels)
        if not found and voice.form == "lean" and not all(degenerate.bears_on(text, asked) for text in texts):
            found = "a part is about something else"
        return found

    task = prompt.decompose_task(voice, asked, pillars)
    return Question(f"{context.mind.name}/decomposing#0", task, is_short=True, fault=fault)
