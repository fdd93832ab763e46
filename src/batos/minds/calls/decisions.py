"""The decisions of a cycle: the shapes of replies, the division of a question, and the faults of one that is useless.

A small model copies the names and words that it was shown, writes one question several times, or none at all. No list
of words is needed to see this: texts are compared by their terms, and a question is known by its mark.

A capable model is asked for one sub-query a part. A small model is asked for two, and only if the question holds
several things to ask; the parts before the last two are given the question itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, create_model

from batos.gate import languages
from batos.inference.decide import FreeText
from batos.inference.schema import Decision
from batos.memory.segmentation import sentence_spans, terms, words
from batos.minds import prompt
from batos.minds.calls.questions import Question
from batos.minds.context import MindContext
from batos.minds.question_kind import kind_of

#: The end of a sentence that is whole.
_ENDED = re.compile(r"""[.!?…。！？؟۔।॥;`|][\s"'”’»)\]」』*_]*\Z""")

#: Longest citation that a method gives, in characters.
QUOTE = 240
MOST_PARTS = 9
#: Longest sub-query, in characters.
QUERY = 280
#: The same in lean form.
SHORT_QUERY = 140
#: Longest answer of a part and of a mission, in characters.
PART_ANSWER, ANSWER = 900, 1_800


def whole_sentences(text: str) -> str:
    """Return the sentences at the head of a text that was cut, without the last one if it stops in the middle.

    >>> whole_sentences("Lamps burn. They are wound every fo")
    'Lamps burn.'
    """
    spans = sentence_spans(text)
    if spans and not _ENDED.search(text[: spans[-1][1]]):
        spans.pop()
    return text[: spans[-1][1]] if spans else ""


#: The answer of a part, and of a mission: plain text.
PART: Final = FreeText(PART_ANSWER, whole_sentences)
WHOLE: Final = FreeText(ANSWER, whole_sentences)


def answer_shape(*, inner: bool) -> FreeText:
    """Return the shape of a mind's answer; that of a mind within another is a part's."""
    return PART if inner else WHOLE


@lru_cache(maxsize=16)
def choice(candidates: int) -> Decision[BaseModel]:
    """Return the shape of a choice between so many candidates, by their numbers as shown, from 1."""
    best: Any = (Annotated[int, Field(ge=1, le=candidates, description="the number of the answer that stands")], ...)
    shape: type[BaseModel] = create_model("Choice", best=best)
    return Decision(shape)


@lru_cache(maxsize=2 * MOST_PARTS)
def decomposition(parts: int, most: int = QUERY) -> Decision[BaseModel]:
    """Return the shape of one bounded sub-query for each of so many parts, by plain keys: `q1`, `q2` and so on.

    Keys that say more are copied by small models in place of questions. A sub-query has at most `most` characters.
    """
    query: Any = (Annotated[str, Field(max_length=most)], ...)
    keys = (f"q{number}" for number in range(1, parts + 1))
    shape: type[BaseModel] = create_model("Decomposition", **dict.fromkeys(keys, query))
    return Decision(shape)


def sub_queries(value: BaseModel) -> tuple[str, ...]:
    """Return the sub-queries of a decomposition in the order of its parts, on one line each."""
    return tuple(" ".join(str(text).split()) for text in value.model_dump().values())


#: Texts whose terms agree to this share (Jaccard) are alike.
ALIKE: Final = 0.85
#: So many words in a row that also stand in a request are copied from it.
COPIED_RUN: Final = 5
#: A text of so many terms at least has a share of different ones that is no less than this, or it repeats itself.
LEAST_TERMS, LEAST_DIFFERENT = 8, 0.4
#: Letters of a word that are compared where its ending may differ.
STEM: Final = 4

#: The marks of a question: Latin, Arabic, Armenian, Ethiopic, Limbu, Coptic, Vai, Bamum, Chinese; Greek in two forms.
_MARKS: Final = frozenset(
    "?\u061f\u2047\u2048\u2049\u203d\u00bf\u055e\u1367\u1945\u2cfa\u2cfb\ua60f\ua6f7\uff1f\ufe56\ufe16\u037e"
)
_GREEK_END: Final = ";"


def fault_of_division(texts: Sequence[str], question: str, request: str = "", labels: Iterable[str] = ()) -> str:
    """Return the reason why texts do not divide a question, as a short sentence; "" if they do.

    `request` is the text that asked for them, without the question, and `labels` are names that were shown with it. The
    order of the texts changes nothing.
    """
    named = {_plain_words(label) for label in labels} - {""}
    for text in sorted(texts):
        found = _own_fault(text, question, request, named)
        if found:
            return found
    if any(alike(one, other) for one, other in combinations(texts, 2)):
        return "two parts are alike"
    return ""


def alike(one: str, other: str) -> bool:
    """Test if two texts have nearly the same terms, in any order and whatever their case and marks."""
    first, second = frozenset(terms(one)), frozenset(terms(other))
    return len(first & second) >= ALIKE * len(first | second)


def asks(text: str) -> bool:
    """Test if a text has the mark of a question, of any script."""
    return not _MARKS.isdisjoint(text) or text.rstrip().endswith(_GREEK_END)


def repeats(text: str) -> bool:
    """Test if a text says the same over and over: few of its terms are different ones."""
    found = list(terms(text))
    return len(found) >= LEAST_TERMS and len(set(found)) < LEAST_DIFFERENT * len(found)


def copies(text: str, request: str, question: str) -> bool:
    """Test if a text repeats a run of a request's words that is not in the question."""
    ours = _runs(request) - _runs(question)
    return not ours.isdisjoint(_runs(text))


def echoes(text: str, question: str) -> bool:
    """Test if a text that should answer a question says the question again.

    >>> echoes("When was the lamp lit?", "When was the lamp lit?"), echoes("In 1887.", "When was the lamp lit?")
    (True, False)
    """
    return asks(question) and alike(text, question)


def bears_on(text: str, question: str) -> bool:
    """Test if a text has a word of the question that is no small word, as far as its first letters.

    A question of small words alone is borne on by every text.

    >>> bears_on("Who built the mill?", "How is the wick trimmed?")
    False
    """
    wanted = _stems(question)
    return not wanted or not wanted.isdisjoint(_stems(text))


def common_words(text: str, question: str) -> int:
    """Count the words of a question, as far as their first letters, that a text has too, without small words.

    >>> common_words("Within what time?", "Who repairs the heating, and within what time?")
    1
    """
    return len(_stems(text) & _stems(question))


def _stems(text: str) -> set[str]:
    return {term[:STEM] for term in terms(text) if term not in languages.SMALL_WORDS}


def _own_fault(text: str, question: str, request: str, labels: set[str]) -> str:
    folded = _plain_words(text)
    if not folded:
        return "a part is empty"
    if folded in labels or any(set(folded.split()) <= set(label.split()) for label in labels):
        return "a part is only a name from the request"
    if copies(text, request, question):
        return "a part copies the request"
    if repeats(text):
        return "a part repeats itself"
    if asks(question) and not asks(text):
        return "a part is no question"
    return ""


def _plain_words(text: str) -> str:
    return " ".join(words(text))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return every run of `COPIED_RUN` terms."""
    found = list(terms(text))
    return {tuple(found[at : at + COPIED_RUN]) for at in range(len(found) - COPIED_RUN + 1)}


#: Stands for the question where only the words of the request are wanted; no request has it.
_NOTHING: Final = "\ufffc"
#: Sub-queries that a small model is asked for.
LEAN_PARTS: Final = 2
#: The reasons for which no model is asked: of a small one, and of any.
ONE_THING: Final = "the question holds one thing to ask"
NO_QUESTION: Final = "it is not a question"
#: The same where the state was redefined.
LEFT_OUT: Final = "the steps of DECOMPOSING do not divide it"
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
    if kind_of(asked) != "fact" and not asks(asked):
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


def division_shape(context: MindContext, parts: int) -> Decision[BaseModel]:
    """Return the shape of the reply."""
    if context.mind.voice.form == "full":
        return decomposition(parts)
    return decomposition(LEAN_PARTS, SHORT_QUERY)


def assign_queries(context: MindContext, slots: Sequence[str], value: BaseModel) -> dict[str, str]:
    """Return the query of each slot: the last ones get the sub-queries, any others the question itself.

    A sub-query that has lost what it asks about ("Within what time?") is followed by the question.
    """
    asked = " ".join(context.mind.question.split())
    divided = [each if common_words(each, asked) >= LEAST_WORDS else f"{each} ({asked})" for each in sub_queries(value)]
    whole = [context.mind.question] * (len(slots) - len(divided))
    return dict(zip(slots, (*whole, *divided), strict=True))


def division_path(context: MindContext) -> str:
    """Return the sample path of the call that divides a mind's question."""
    return f"{context.mind.name}/decomposing#0"


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
        texts = sub_queries(value)
        found = fault_of_division(texts, asked, shown, labels)
        if not found and voice.form == "lean" and not all(bears_on(text, asked) for text in texts):
            found = "a part is about something else"
        return found

    task = prompt.decompose_task(voice, asked, pillars)
    return Question(division_path(context), task, is_short=True, fault=fault)
