"""Scores answers by gold items: what is right stands in a short answer, word for word but for the form of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from batos.gate import languages
from batos.gate.languages import is_number, placed_stems
from batos.gate.uncheckable import manner
from batos.memory.exchanges import NOTHING_NEAR
from batos.memory.segmentation import line_of, sentence_spans, words
from batos.records.gold_items import GoldItem

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
