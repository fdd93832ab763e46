"""Finds what an answer states of which its documents do not speak, and days that it repeats from an older text."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from functools import lru_cache
from heapq import nsmallest
from importlib.resources import files
from typing import Final

from batos.gate import carrying, dates, figures, languages, numerals, occurrence, thresholds
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution
from batos.gate.evidence_index import CONVERSATION
from batos.gate.ground import Draft, Ground, Spot, without_spaces
from batos.gate.languages import is_number, placed_stems, stems
from batos.gate.uncheckable import asks_for_text
from batos.memory.evidence import Passage
from batos.memory.segmentation import line_of, sentence_spans, words
from batos.memory.segmentation import stems as term_stems

#: Sentences that are tried as the best place for some words, and places of a value that are looked at.
_TRIED = 40

#: The first line of a message, such as `Date: 3 May`.
_HEAD = re.compile(r"\W{0,4}[^\W\d_]{2,20}[^\S\n]?[:：]")
#: Words that ask, in questions of several things.
_ASKING = re.compile(
    r"\b(?:who|what|which|when|where|how|wer|welche\w*|wann|wo|wie|qui|que|quel\w*|quand|où|combien|quién|qué|cuál\w*|cuándo|cuánt\w*"
    r"|chi|che|quale|quando|dove|quant\w*|wie|wat|welke?|wanneer|waar|hoe\w*|(?:(?<!\w )|(?<=\bund ))was)\b",
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
    if several or _OF_MANY.search(ground.question) or asks_for_text(ground.question):
        return
    language = draft.language
    asked = frozenset(each for each in stems(ground.question, language) if not is_number(each))
    split = (frozenset(stems(part, language)) & asked for part in _PARTS.split(ground.question))
    index, best = ground.index, _passages_of_best(ground, asked)
    parts = [each for each in (asked, *split) if any(map(index.has, each))]
    for_name = _FOR_NAME.search(ground.question) is not None
    for sentence in attribution.select("not_carried"):
        said = frozenset(each for each in stems(sentence.text, language) if not is_number(each))
        if len(said - asked) > thresholds.STRAY_WORDS:
            continue
        found = [*_values(sentence, ground), *(_names(sentence, ground, language) if for_name else ())]
        for value, places in found:
            told = [at for at in places if index.language_of(at) == language]
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
    for start, end in carrying.spans_of(sentence.text, "name", language):
        name = sentence.text[start:end]
        parts = frozenset(stems(name, language))
        if len(name.split()) > 1 and parts and not parts & asked:
            held = [frozenset(ground.index.with_stem(each)) for each in sorted(parts)]
            yield name, sorted(frozenset.intersection(*held))


# -- sentences whose words hardly occur in anything that an answer may rest on: nothing there speaks of them


#: Words of a judgement on what the documents say, which stand in none of them.
_VERDICTS: Final = frozenset(
    "answer yes no yeah nope true false both neither antwort ja nein doch beide keiner keine réponse oui non vrai faux"
    " respuesta sí si verdadero falso risposta vero sim não nee да нет はい いいえ 是 是的 不是 否 不 对 不对"
    " 네 아니요 نعم لا हाँ नहीं".split()
)


def find_inventions(draft: Draft, attribution: Attribution) -> Iterator[AttributedSentence]:
    """Yield the sentences that nothing carries and of whose words hardly any is known.

    Other words for the same are no inventions, and neither is a text that was asked for.
    """
    question, index = draft.ground.question, draft.ground.index
    if asks_for_text(question):
        return
    language = draft.language
    if language not in index.own_languages:
        return
    asked = {each.stem for each in placed_stems(question, language)}
    few = len(attribution.sentences) <= thresholds.SHORT_ANSWER
    for sentence in attribution.select("not_carried"):
        if sentence.text.startswith("|"):
            continue
        share, count = known_share(draft, sentence, asked, language)
        strange = (count >= thresholds.KNOWN_WORDS and share < thresholds.KNOWN_SHARE) or (few and count and not share)
        if strange and not _has_values(sentence.text):
            yield sentence


def known_share(draft: Draft, sentence: AttributedSentence, asked: set[str], language: str | None) -> tuple[float, int]:
    """Return the share of a sentence's new words that occur anywhere in the evidence, and the number of new words."""
    index = draft.ground.index
    days = dates.find(sentence.text)
    new = {
        each.stem
        for each in placed_stems(sentence.text, language)
        if not is_number(each.stem) and not any(day.start <= each.start < day.end for day in days)
    } - asked
    new -= {each.stem for each in placed_stems(" ".join(_VERDICTS & {*words(sentence.text)}), language)}
    known = {each for each in new if index.has(each) or _is_made_of(each, draft)}
    whole = index.weigh(new)
    return (index.weigh(known) / whole if whole else 1.0), len(new)


def _has_values(text: str) -> bool:
    """Test if a sentence has a date, or a number of two digits, which other checks look for."""
    return bool(dates.find(text)) or any(sum(map(str.isdigit, each.text)) > 1 for each in figures.find(text))


def _is_made_of(stem: str, draft: Draft) -> bool:
    """Test if a pair of letters of a script without blanks is made of letters that the ground has."""
    return bool(without_spaces(stem)) and all(letter in draft.ground.text for letter in stem)


# -- answers about somebody, or some year, that a question names and that its files do not


_YEAR: Final = re.compile(r"(?<![\d.,'’/-])(?:19|20)\d\d(?![\d'’/-]|[.,]\d)")
#: Words by which a sentence may say that it is not there.
_NEGATION: Final = re.compile(
    r"\b(?:not?|none|nothing|never|nobody|without|n['’]t|nicht|kein\w*|nie|ohne|ne|n['’]|pas|aucune?|rien|sans|ningun\w*|ningún|nada"
    r"|sin|non|nessun\w*|niente|senza|não|nenhum\w*|sem|niet|geen|zonder|не|нет)\b|n['’]t\b|[没沒不无無未]|ない|ません|なし",
    re.IGNORECASE,
)
#: Words of an answer that is a value alone, beside the question's.
_BARE: Final = 3


def absent_subjects(draft: Draft, attribution: Attribution) -> Iterator[Spot]:
    """Yield the sentences that state something of a name or a year of the question which no file has.

    Only files that were shown whole, in the question's script, can be known not to have it; of a question in several
    sentences the others may tell who is meant.
    """
    ground = draft.ground
    if not _are_whole(ground) or asks_for_text(ground.question) or len(sentence_spans(ground.question)) > 1:
        return
    absent = [*_absent_names(ground), *_absent_years(ground)]
    asked = set(words(ground.question))
    for sentence in attribution.sentences if absent else ():
        if sentence.state == "not_checkable" or _NEGATION.search(sentence.text):
            continue
        is_bare = len(attribution.sentences) == 1 and len(set(words(sentence.text)) - asked) <= _BARE
        named = (each for each in absent if is_bare or line_of(each) in line_of(sentence.text))
        if (subject := next(named, None)) is not None:
            yield Spot("unnamed", sentence.text, (("asked", subject),))


def _are_whole(ground: Ground) -> bool:
    """Test if the evidence is files in the question's script, and all of them."""
    evidence = ground.evidence
    given = bool(evidence.passages) and not (evidence.omitted_passages or evidence.turns or evidence.view)
    is_written_so = bool(languages.main_scripts(ground.question) & ground.scripts)
    return given and is_written_so and not any(each.document for each in evidence.passages)


def _absent_names(ground: Ground) -> list[str]:
    """Return the names of several words, or after a title, of which no part occurs in a file."""
    named = list(occurrence.full_names(ground.question))
    there = {word for text in ground.documents for word in words(text)} if named else set()

    def is_there(name: str) -> bool:
        parts = [word for word in words(name) if len(word) > 1]
        return not parts or any(part in each for part in parts for each in there)

    return [name for name in named if not is_there(name)]


def _absent_years(ground: Ground) -> Iterator[str]:
    """Yield the years, in no date, that no file has where it has others."""
    days = dates.find(ground.question)
    years = (found for found in _YEAR.finditer(ground.question))
    apart = [found[0] for found in years if not any(day.start <= found.start() < day.end for day in days)]
    text = "\n".join(ground.documents) if apart else ""
    if not _YEAR.search(text):
        return
    for year in apart:
        if year not in text and not re.search(rf"(?:['’/.-]|\A){year[2:]}(?!\d)", text):
            yield year


#: The meaning of spans that are counted from now only in what somebody said.
_SPOKEN: Final = "spoken"
_UNSPACED: Final = frozenset({"Chinese", "Japanese"})
_NUMBER, _FAR_NUMBER = r"(?:\d{1,4}|[^\W\d_]{1,12})", r"(?:\d{1,4}|[一二两三四五六七八九十几数]{1,3})"


@lru_cache(maxsize=1)
def _meanings() -> dict[str, re.Pattern[str]]:
    """Return what finds the words of each meaning, in any language."""
    listed = tomllib.loads(files(__package__).joinpath("relative_days.toml").read_text(encoding="utf-8"))
    return {meaning: _pattern(said) for meaning, said in listed.items()}


def _pattern(said: dict[str, str]) -> re.Pattern[str]:
    spaced = "|".join(words for language, words in said.items() if language not in _UNSPACED).replace("{n}", _NUMBER)
    unspaced = "|".join(said[language] for language in sorted(_UNSPACED)).replace("{n}", _FAR_NUMBER)
    return re.compile(rf"(?<!\w)(?:{spaced})(?!\w)|{unspaced}", re.IGNORECASE)


def names_relative_day(text: str, *, spoken: bool) -> bool:
    """Test if a text has a word whose day is another on another day; `spoken`: somebody said it to somebody."""
    return next(_find_words(text, spoken=spoken), None) is not None


def _find_words(text: str, *, spoken: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the meanings of such words in a text, each with its first word."""
    for meaning, pattern in _meanings().items():
        word = pattern.search(text) if spoken or meaning != _SPOKEN else None
        if word is not None and not _is_here(word[0], text):
            yield meaning, word[0]


def find_repeated(draft: Draft) -> list[Spot] | None:
    """Check that no day which is another by now is repeated from a dated text; None if the answer names none."""
    ground, answer = draft.ground, languages.prose(draft.answer)
    found: list[Spot] = []
    made = False
    for start, end in sentence_spans(answer):
        sentence = answer[start:end]
        for meaning, word in _find_words(sentence):
            written = _days_of(ground, meaning, sentence, word)
            made = made or bool(written)
            if written and ground.today not in written and not dates.find(sentence):
                found.append(Spot("today", word, (("day", max(written)),)))
    return found if made else None


def _is_here(word: str, sentence: str) -> bool:
    """Test if a word is the German for `here`, which is the French for `yesterday`."""
    return word.casefold() == "hier" and languages.guess(sentence) != "French"


def _days_of(ground: Ground, meaning: str, sentence: str, word: str) -> set[str]:
    """Return the days of the texts that have a word of this meaning; today's where the conversation has it.

    A question that has it means its own day: then only texts count of which the sentence says more than was asked.
    """
    pattern = _meanings()[meaning]
    written = {each.day[:10]: each for each in ground.passages if each.day and _speaks(each, meaning)}
    if pattern.search(ground.question):
        more = set(term_stems(sentence)) - set(term_stems(f"{ground.question} {word}"))
        return {day for day, each in written.items() if more & _said_beside(each, pattern)}
    turns = [each for each in ground.evidence.turns if pattern.search(f"{each.question}\n{each.answer}")]
    talk = {each.day or ground.today for each in turns}
    return set(written) | (talk or ({ground.today} if pattern.search(ground.said) else set()))


def _speaks(passage: Passage, meaning: str) -> bool:
    return any(each == meaning for each, _ in _find_words(passage.text, spoken=bool(passage.speaker)))


def _said_beside(passage: Passage, pattern: re.Pattern[str]) -> set[str]:
    """Return the stems of the sentences of a passage in which a word stands."""
    text = passage.text
    with_word = (text[start:end] for start, end in sentence_spans(text) if pattern.search(text[start:end]))
    return {stem for each in with_word for stem in term_stems(each)}
