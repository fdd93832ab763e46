"""Makes gold items of texts that are remembered and of answers that people judged, and scores answers by them."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple
from zlib import crc32

from batos.autotelic.entropy import content
from batos.autotelic.model_missions import MissionTask, ModelMissions
from batos.gate import carrying, figures, languages, numerals
from batos.gate.languages import is_number, placed_stems
from batos.gate.uncheckable import is_question, manner
from batos.memory.exchanges import NOTHING_NEAR
from batos.memory.segmentation import line_of, sentence_spans, words
from batos.memory.text_units import units_of
from batos.records.gold_items import GoldItem, ItemKind, ItemSplit, client_of

#: The most words of an answer that is right because it has what is right in it; also so many times those of the other
#: arm. A longer one is as good as its words: else whoever says all would always be right.
SHORT, LONGER = 40, 1.5
#: The kinds whose gold is no sentence, but a number, a name or a value: without it an answer is wrong.
_EXACT: Final = frozenset({"A", "S"})


def fold(text: str, language: str | None) -> tuple[str, ...]:
    """Return the words of a text that say something, as they are compared: numbers in one form, as the gate has them.

    >>> fold("The twelve lamps cost 1,889 crowns.", "English") == fold("12 lamps: cost 1889 crowns", "English")
    True
    """
    return tuple(
        each.stem if is_number(each.stem) else " ".join(words(text[each.start : each.end]))
        for each in placed_stems(text, language)
    )


def count_runs(text: Sequence[str], run: Sequence[str]) -> int:
    """Return how often folded words stand in a row in a folded text.

    >>> count_runs(("lit", "12", "march"), ("12", "march")), count_runs(("lit",), ())
    (1, 0)
    """
    return f" {' '.join(text)} ".replace(" ", "  ").count(f" {'  '.join(run)} ") if run else 0


def language_of(item: GoldItem) -> str | None:
    """Return the language in which the words of an item, and of answers to it, are folded."""
    return languages.guess(" ".join((item.question, *item.gold)))


def score(item: GoldItem, answer: str, beside: str = "", ruled: str = "") -> float:
    """Return how right an answer is, in [0, 1]. `beside` is the answer of the other arm of a trial.

    `ruled` is the reason for which a rule made the answer, if one did. The question said back is worth nothing.
    """
    if item.kind == "N":
        return float(ruled == NOTHING_NEAR or finds_nothing(answer, item.question))
    language = language_of(item)
    asked = frozenset(fold(item.question, language))
    said, gold = fold(answer, language), [fold(each, language) for each in item.gold]
    new = [word for each in gold for word in each if word not in asked]
    if not new:
        return 0.0
    holds = all(count_runs(said, each) for each in gold if each)
    if holds and len(words(answer)) <= max(SHORT, LONGER * len(words(beside))):
        return 1.0
    if item.kind in _EXACT and not holds:
        return 0.0
    return _overlap([word for word in said if word not in asked], new)


def _overlap(said: Sequence[str], gold: Sequence[str]) -> float:
    """Return the F1 of the words of an answer."""
    common = (Counter(said) & Counter(gold)).total()
    return 2 * common / (len(said) + len(gold)) if said or gold else 0.0


def finds_nothing(answer: str, question: str) -> bool:
    """Test if an answer says that nothing was found, and states nothing, beside the question.

    >>> finds_nothing("The notes do not say who lit it.", "Who lit it?"), finds_nothing("Maro.", "Who lit it?")
    (True, False)
    """
    asked = line_of(question)
    said = [answer[start:end] for start, end in sentence_spans(answer)]
    manners = {manner(each, each) for each in said if line_of(each) not in asked}
    return "nothing_found" in manners and None not in manners


def score_rank(item: GoldItem, recalled: Sequence[str]) -> float:
    """Return one over the rank of the first recalled text that has what is right in it; 0 if none has.

    >>> item = GoldItem("i-1", "R", "lamp lit", ("The lamp was lit in 1889.",), "d-1", "judge", "ann", "")
    >>> score_rank(item, ["Gulls cry.", "Fog.  The lamp was\\nlit in 1889. Rain."])
    0.5
    """
    gold = [line_of(each) for each in item.gold]
    ranks = (rank for rank, text in enumerate(recalled, 1) if gold and all(each in line_of(text) for each in gold))
    return 1 / next(ranks, float("inf"))


#: The share of a sentence's words, the commonest in memory, that look for it. Among sentences they find it about as
#: often as a person's question does, half of the words each time; among parts of memory it is the harder of the two.
SHARE: Final = 0.15
#: Words that a sentence has beside its span at least, and those of the longest sentence.
LEAST_WORDS, MOST_WORDS = 6, 60
#: The most items of a kind that one text gives.
MOST: Final[Mapping[ItemKind, int]] = {"R": 8, "H": 4, "A": 2, "S": 2}
#: The fewest and the most words below a heading that an answer is expected to tell.
_SECTION: Final = (8, 150)
#: The most words of a value in the place of another, and the fewest that its sentence has in common with the former.
_MOST_VALUE, _LEAST_ALIKE = 8, 2
#: The most words of a question that a model wrote.
_MOST_QUESTION: Final = 30
#: The share of a sentence's words that a question may have: one with more is found by its own words.
_BORROWED: Final = 0.5
_GAP: Final = "___"
_MARKS: Final = "#= \t"

#: The questions for a heading, for a gap and for a key, by language.
_FORMS: Final[Mapping[str, tuple[str, str, str]]] = {
    "English": ("What does {0} say about {1}?", "What holds now in the place of the gap? {0}", "What is {0} now?"),
    "German": ("Was sagt {0} über {1}?", "Was gilt jetzt an der Stelle der Lücke? {0}", "Was ist {0} jetzt?"),
    "French": ("Que dit {0} sur {1} ?", "Que vaut maintenant le blanc ? {0}", "Quel est {0} maintenant ?"),
    "Spanish": ("¿Qué dice {0} sobre {1}?", "¿Qué vale ahora en el hueco? {0}", "¿Qué es {0} ahora?"),
    "Italian": ("Cosa dice {0} su {1}?", "Che cosa vale ora al posto dello spazio? {0}", "Qual è {0} ora?"),
    "Portuguese": ("O que diz {0} sobre {1}?", "O que vale agora na lacuna? {0}", "Qual é {0} agora?"),
    "Dutch": ("Wat zegt {0} over {1}?", "Wat geldt nu op de plaats van de leemte? {0}", "Wat is {0} nu?"),
}


class ItemSource(NamedTuple):
    """A text that items are made of. `void` are spans that no more hold, `key` is that of a fact.

    Of a mission's answer `name` is the mission's id.
    """

    name: str
    user: str
    title: str
    text: str
    split: ItemSplit
    at: str
    void: tuple[tuple[int, int], ...] = ()
    key: str = ""

    def item(self, kind: ItemKind, question: str, gold: Sequence[str]) -> GoldItem:
        """Return an item of it, whose id is that of its content."""
        told = "\0".join((kind, self.name, question, *gold))
        name = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return GoldItem(f"i-{name}", kind, question, tuple(gold), self.name, self.split, self.user, self.at)

    def holds(self, start: int, end: int) -> bool:
        """Test if nothing in a span was given up."""
        return all(end <= begin or behind <= start for begin, behind in self.void)


class StatedFact(NamedTuple):
    """A sentence, and a number or a name in it that its text has only there."""

    sentence: str
    span: str


def _held_sentences(source: ItemSource) -> list[str]:
    """Return the sentences of a text that hold, each in one line."""
    spans = (each for each in sentence_spans(source.text) if source.holds(*each))
    return [" ".join(source.text[start:end].split()) for start, end in spans]


def held_text(source: ItemSource) -> str:
    """Return what holds of a text, in one line."""
    kept, at = list[str](), 0
    for start, end in sorted(source.void):
        kept.append(source.text[at:start])
        at = max(at, end)
    return " ".join("\n".join((*kept, source.text[at:])).split())


def facts_of(source: ItemSource) -> Iterator[StatedFact]:
    """Yield the sentences of a text with a span each, spread over the whole text; always in the same order."""
    language = languages.guess(source.text)
    whole = fold(source.text, language)
    for sentence in sorted(_held_sentences(source), key=lambda each: crc32(each.encode("utf-8", "surrogatepass"))):
        if len(words(sentence)) <= MOST_WORDS and not is_question(sentence):
            spans = (each for each in find_spans(sentence, language) if count_runs(whole, fold(each, language)) == 1)
            span = next(spans, "")
            if span and len(_telling(sentence.replace(span, " "), language)) >= LEAST_WORDS:
                yield StatedFact(sentence, span)


def find_spans(sentence: str, language: str | None) -> Iterator[str]:
    """Yield the numbers of a sentence, in figures or words, then the names that do not begin it. Counts are no numbers.

    >>> list(find_spans("The lamp of Holm Light cost 1,889 crowns.", "English"))
    ['1,889', 'Holm Light']
    """
    yield from (each.text for each in figures.find(sentence) if each.values and not each.counts)
    for word in numerals.number_words(sentence, language or ""):
        found = re.search(rf"\b{re.escape(word)}\b", sentence, re.IGNORECASE)
        if found is not None:
            yield found[0]
    for start, end in carrying.spans_of(sentence, "name", language) if language != "German" else ():
        if start:
            yield sentence[start:end]


def _telling(text: str, language: str | None) -> dict[str, str]:
    """Return the words of a text that say what it is about by their stems, in order."""
    found: dict[str, str] = {}
    for each in placed_stems(text, language):
        word = text[each.start : each.end]
        for stem in content(word):
            found.setdefault(stem, word)
    return found


def make_retrieval(source: ItemSource, often: Callable[[str], int]) -> Iterator[GoldItem]:
    """Yield the items that a recall is judged by; `often` tells how often memory has a stem.

    The query is the commonest words of a sentence without its span: rare ones would find it each time.
    """
    for fact in islice(facts_of(source), MOST["R"]):
        known = _telling(fact.sentence.replace(fact.span, " "), languages.guess(source.text))
        many = max(1, round(SHARE * len(known)))
        common = frozenset(sorted(known, key=often, reverse=True)[:many])
        query = " ".join(word for stem, word in known.items() if stem in common)
        yield source.item("R", query, (fact.sentence,))


def make_headings(source: ItemSource) -> Iterator[GoldItem]:
    """Yield an item for headings of a text that has several: the sentences below one, up to the next, are wanted."""
    sections: list[tuple[str, list[str]]] = []
    for unit in units_of(source.text):
        part = " ".join(source.text[unit.start : unit.end].split())
        if unit.level:
            sections.append((part.strip(_MARKS), []))
        elif sections and source.holds(unit.start, unit.end):
            sections[-1][1].append(part)
    names = [heading.casefold() for heading, _ in sections]
    fewest, most = _SECTION
    wanted = (
        (heading, gold)
        for heading, gold in sections
        if heading and names.count(heading.casefold()) == 1 and fewest <= sum(len(words(each)) for each in gold) <= most
    )
    for heading, gold in islice(wanted, MOST["H"]) if len(sections) > 1 else ():
        asked = _read_forms(" ".join(gold))[0].format(source.title, heading)
        yield source.item("H", asked, gold)


def _read_forms(text: str) -> tuple[str, str, str]:
    return _FORMS.get(languages.guess(text) or "", _FORMS["English"])


def make_superseding(source: ItemSource, given_up: Sequence[str]) -> Iterator[GoldItem]:
    """Yield the items of values that took the place of others; `given_up` are the statements that no more hold.

    A fact is asked for by its key. Else the sentence that is most alike is told with a gap where it differs.
    """
    if source.key and given_up and len(words(source.text)) <= _MOST_VALUE:
        yield source.item("S", _read_forms(source.text)[2].format(source.key), (source.text.strip(),))
        return
    found: dict[str, GoldItem] = {}
    for former in given_up:
        alike = max(_held_sentences(source), key=lambda each: len(content(each) & content(former)), default="")
        if len(content(alike) & content(former)) >= _LEAST_ALIKE and (gap := _find_gap(alike, former)) is not None:
            told = f"{alike[: gap[0]]}{_GAP}{alike[gap[1] :]}"
            item = source.item("S", _read_forms(alike)[1].format(told), (alike[slice(*gap)],))
            found[item.id] = item
    yield from islice(found.values(), MOST["S"])


def _find_gap(sentence: str, former: str) -> tuple[int, int] | None:
    """Return the span from the first to the last word of a sentence that a former one has not, if it is a short one."""
    language = languages.guess(sentence)
    before = {each.stem for each in placed_stems(former, language)}
    fresh = [each for each in placed_stems(sentence, language) if each.stem not in before]
    if not fresh:
        return None
    start, end = fresh[0].start, fresh[-1].end
    return (start, end) if len(words(sentence[start:end])) <= _MOST_VALUE else None


def make_approved(source: ItemSource, question: str) -> GoldItem | None:
    """Return the item of an answer that a person approved or wrote; None if the question says all of it."""
    item = source.item("U", question, (source.text,))
    return item if _has_news(question, source.text) else None


def _has_news(question: str, gold: str) -> bool:
    """Test if what is right has a word that the question has not: else the question said back would be right."""
    language = languages.guess(f"{question} {gold}")
    return not set(fold(gold, language)) <= set(fold(question, language))


# -- questions that a model writes


def check_question(question: str, fact: StatedFact) -> bool:
    """Test if a model's question may ask for the span of a sentence: it does not tell it, nor most of the sentence."""
    language = languages.guess(f"{question} {fact.sentence}")
    asked, said = content(question), content(fact.sentence)
    return (
        is_question(question)
        and "\n" not in question
        and len(words(question)) <= _MOST_QUESTION
        and not count_runs(fold(question, language), fold(fact.span, language))
        and _has_news(question, fact.span)
        and 0 < len(asked & said) <= _BORROWED * len(said)
    )


def make_unanswerable(item: GoldItem) -> GoldItem:
    """Return an item that asks the same where nothing answers it, under the id of the other one with a letter more."""
    return item._replace(id=f"{item.id}n", kind="N", gold=())


def find_held(text: str, spans: Collection[str]) -> set[str]:
    """Return those spans that a text has, in whatever form of their numbers."""
    plain = figures.plain(unicodedata.normalize("NFKC", text)).casefold()
    near = [each for each in spans if all(_may_have(plain, word) for word in fold(each, "English"))]
    if not near:
        return set()
    language = languages.guess(text) or "English"
    whole = fold(text, language)
    return {each for each in near if count_runs(whole, fold(each, language))}


def _may_have(plain: str, word: str) -> bool:
    """Test if a text has a word, or the last digits of a long number; a short one may stand there as a word."""
    digits = re.split(r"\D", word)[-1][-3:] if is_number(word) else word
    return digits in plain or (is_number(word) and len(word) < 3)


#: The most missions for one question: it is written, answered from its sentence, and asked without any.
MISSIONS: Final = 3
_WANTED: Final = (
    "The file has a sentence and, behind `Answer:`, some words of it. Write one question, in the language of the"
    " sentence, to which those words are the answer. Neither use them in the question, nor repeat the sentence."
)
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"question": {"type": "string", "maxLength": 200}},
    "required": ["question"],
    "additionalProperties": False,
}


class WrittenQuestion(NamedTuple):
    """The outcome of asking a model for a question: the item, None if it does not do, and the missions it took."""

    item: GoldItem | None
    missions: int


class QuestionWriter:
    """Writes questions by missions that name the memory which they are about: they are erased with it."""

    def __init__(self, missions: ModelMissions) -> None:
        self.missions = missions

    async def write(self, source: ItemSource, fact: StatedFact) -> WrittenQuestion:
        """Return an A item of a fact: a question that the sentence answers, and that no model answers without it."""
        task = MissionTask(
            _WANTED, source.user, client_of(source.name), f"{fact.sentence}\n\nAnswer: {fact.span}", _SCHEMA
        )
        question = _question_of(await self._ask(task))
        if not check_question(question, fact):
            return WrittenQuestion(None, 1)
        item = source.item("A", question, (fact.span,))
        asked = MissionTask(question, source.user, client_of(source.name))
        if score(item, await self._ask(asked._replace(shown=fact.sentence))) < 1:
            return WrittenQuestion(None, 2)
        known = score(item, await self._ask(asked)) > 0
        return WrittenQuestion(None if known or self.missions.is_given_up else item, MISSIONS)

    async def _ask(self, task: MissionTask) -> str:
        told = await self.missions.report(task)
        return "" if told is None else str(told.get("answer") or "")


def _question_of(reply: str) -> str:
    """Return the question of a reply; "" if it has none."""
    try:
        told = json.loads(reply)
    except ValueError:
        return ""
    question = told.get("question") if isinstance(told, dict) else None
    return question.strip() if isinstance(question, str) else ""
