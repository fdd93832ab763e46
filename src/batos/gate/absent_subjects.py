"""Finds answers about somebody, or some year, that a question names and that its files do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from batos.gate import occurrence
from batos.gate.attribution import Attribution
from batos.gate.ground import Draft, Ground, Spot
from batos.gate.texts import languages, letters
from batos.gate.values import dates
from batos.memory.sentences import sentence_spans
from batos.memory.terms import line_of, words

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
    if not _are_whole(ground) or letters.asks_for_text(ground.question) or len(sentence_spans(ground.question)) > 1:
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
