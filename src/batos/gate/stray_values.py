"""Finds values of a short answer that stand in the documents far from all that the question asks about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from heapq import nsmallest

from batos.gate import rivals, thresholds
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution
from batos.gate.evidence_index import CONVERSATION
from batos.gate.ground import Draft, Ground, Spot
from batos.gate.texts import letters
from batos.gate.texts.stems import is_number, stems
from batos.gate.values import dates, figures, numerals

#: Sentences that are tried as the best place for some words, and places of a value that are looked at.
_TRIED = 40

#: The first line of a message, such as `Date: 3 May`.
_HEAD = re.compile(r"\W{0,4}[^\W\d_]{2,20}[^\S\n]?[:：]")
#: Words that ask, in questions of several things.
_ASKING = re.compile(
    r"\b(?:who|what|which|when|where|how|wer|was|welche\w*|wann|wo|wie|qui|que|quel\w*|quand|où|combien|quién|qué|cuál\w*|cuándo|cuánt\w*"
    r"|chi|che|quale|quando|dove|quant\w*|wie|wat|welke?|wanneer|waar|hoe\w*)\b",
    re.IGNORECASE,
)
#: Questions for the name of somebody.
_FOR_NAME = re.compile(
    r"\b(?:who|whom|name|wer|wen|wem|heißt|qui|s'appelle|nom|quién|se llama|nombre|chi|si chiama|nome|quem|chama|wie is"
    r"|heet|naam)\b|誰|だれ|名前|谁|叫什么|名字|姓什么",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[,;:?？，；：]|\b(?:and|und|et|y|e|en|и)\b|和|以及", re.IGNORECASE)
#: Questions whose answers put values of many places together.
_OF_MANY = re.compile(
    r"\b(?:list|all|each|every|compare|comparison|differ\w*|summar\w*|table|both|json|liste\w*|alle|jede\w*|vergleich\w*|fasse|tabelle"
    r"|toutes?|tous|chaque|compare[zr]?|résum\w*|tableau|todos|todas|cada|compara\w*|resum\w*|tabla|tutt[ie]|ogni|confronta|riassumi"
    r"|tabela|ieder\w*|elke|vergelijk|samenvat\w*|все|каждый|сравни\w*)\b|列出|所有|比较|总结|概括|すべて|全て|比べ|まとめ|一覧",
    re.IGNORECASE,
)


def stray(draft: Draft, attribution: Attribution) -> Iterator[Spot]:
    """Yield the values of sentences that nothing carries and that stand where nothing of the question stands."""
    ground = draft.ground
    several = len(_ASKING.findall(ground.question)) > thresholds.STRAY_QUESTIONS
    if several or _OF_MANY.search(ground.question) or letters.asks_for_text(ground.question):
        return
    language = draft.language
    asked = frozenset(each for each in stems(ground.question, language) if not is_number(each))
    split = (frozenset(stems(part, language)) & asked for part in _PARTS.split(ground.question))
    parts = [each for each in (asked, *split) if each]
    index, best = ground.index, _passages_of_best(ground, asked)
    for_name = _FOR_NAME.search(ground.question) is not None
    for sentence in attribution.select("not_carried"):
        said = frozenset(each for each in stems(sentence.text, language) if not is_number(each))
        if len(said - asked) > thresholds.STRAY_WORDS:
            continue
        found = [*_values(sentence, ground), *(_names(sentence, ground, language) if for_name else ())]
        for value, places in found:
            told = [at for at in places if index.own_languages[index.document_of[at]] == language]
            own = frozenset(stems(value, language))
            words = [each for part in parts for each in (part | (said - own), part)]
            if not words or not places or told != places:
                continue
            if not best.isdisjoint(index.sentences[at].document for at in places) and (
                max(_share(ground, each, places) for each in words) < thresholds.STRAY_SHARE
            ):
                yield Spot("stray", value, (("near", index.sentences[places[0]].quote),))


def _passages_of_best(ground: Ground, asked: Set[str]) -> frozenset[int]:
    """Return the passages of the files that have most of a question: of another one a link may lead to a value."""
    index, files = ground.index, {each.number: each.file for each in ground.passages}
    held: dict[tuple[str, str], set[str]] = {file: set() for file in files.values()}
    for at in index.hits(asked):
        if (number := index.sentences[at].document) != CONVERSATION:
            held[files[number]] |= index.stems[at] & asked
    weights = {file: index.weigh(found) for file, found in held.items()}
    most = max(weights.values(), default=0.0)
    return frozenset(number for number, file in files.items() if weights[file] >= most)


def _share(ground: Ground, words: Set[str], places: list[int]) -> float:
    """Return the most that stands of some words beside one of these places, of what stands of them beside any."""
    index = ground.index
    hits = index.hits(words)
    first = nsmallest(_TRIED, hits, key=lambda at: (-hits[at], at))
    near = {at + step for at in first for step in range(-thresholds.STRAY_BESIDE, thresholds.STRAY_BESIDE + 1)}
    best = max((_beside(ground, words, at) for at in near), default=0.0)
    return max(_beside(ground, words, at) for at in places[:_TRIED]) / best if best else 1.0


def _beside(ground: Ground, words: Set[str], at: int) -> float:
    """Return what stands of some words beside a place; the head of a message, with its day, is beside all of it."""
    index = ground.index
    at = min(max(at, 0), len(index.sentences) - 1)
    first = bisect_left(index.document_of, index.document_of[at])
    end = bisect_right(index.document_of, index.document_of[at])
    if at > first or not _HEAD.match(index.sentences[at].quote):
        first, end = max(first, at - thresholds.STRAY_BESIDE), min(end, at + thresholds.STRAY_BESIDE + 1)
    return index.weigh(words & frozenset().union(*index.stems[first:end]))


def _values(sentence: AttributedSentence, ground: Ground) -> Iterator[tuple[str, list[int]]]:
    """Yield dates, and numbers of two digits and more, with the sentences of documents that have them."""
    text, places = figures.plain(sentence.text), ground.value_places
    days = dates.find(text)
    asked = figures.read_numbers(ground.question).values
    for day in days:
        held = {at for reading in day.readings for at in places.get(reading[1:], ())}
        yield day.text, sorted(held)
    for figure in figures.find(text):
        within = any(day.start <= figure.start < day.end for day in days)
        if not within and sum(map(str.isdigit, figure.text)) > 1 and not figure.values & asked:
            yield figure.text, sorted({at for value in figure.values for at in places.get(value, ())})
    for word, value in numerals.chinese_numbers(text):
        if value not in asked:
            yield word, places.get(value, [])


def _names(sentence: AttributedSentence, ground: Ground, language: str | None) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of several words, with the sentences of documents that have all of these."""
    asked = frozenset(stems(ground.question, language))
    for start, end in rivals.spans_of(sentence.text, "name", language):
        name = sentence.text[start:end]
        parts = frozenset(stems(name, language))
        if len(name.split()) > 1 and parts and not parts & asked:
            held = [frozenset(ground.index.with_stem(each)) for each in sorted(parts)]
            yield name, sorted(frozenset.intersection(*held))
