"""Finds sentences whose words hardly occur in anything that an answer may rest on: nothing there speaks of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from batos.gate import thresholds
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution
from batos.gate.ground import Draft, without_spaces
from batos.gate.texts import letters
from batos.gate.texts.stems import is_number, placed_stems
from batos.gate.values import dates, figures
from batos.memory.terms import words

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
    if letters.asks_for_text(question):
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
