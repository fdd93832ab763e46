"""Finds days that an answer repeats from an older text as if said today: tomorrow, last week, in two years."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Final

from batos.gate.ground import Draft, Ground, Spot
from batos.gate.texts import languages
from batos.gate.values import dates
from batos.memory.evidence import Passage
from batos.memory.sentences import sentence_spans
from batos.memory.terms import stems

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


def names_any(text: str, *, spoken: bool) -> bool:
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
        more = set(stems(sentence)) - set(stems(f"{ground.question} {word}"))
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
    return {stem for each in with_word for stem in stems(each)}
