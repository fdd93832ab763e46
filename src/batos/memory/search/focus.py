"""Bring evidence into focus: the sentences of passages that bear most on one question, in place of the passages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from batos.memory import thresholds
from batos.memory.evidence import Passage
from batos.memory.sentences import sentence_spans
from batos.memory.terms import stems

# A sentence that begins so speaks of something that the sentence before it names.
_REFERRING = re.compile(
    r"""["'“‘«(]*(?:(?:he|she|it|they|this|that|these|those|his|her|its|their|er|sie|es|dies\w{0,2}|seine?\w?|ihre?\w?|il|"""
    r"elle|ils|elles|cela|ce|cette|ces|son|sa|ses|él|ella|ellos|ellas|esto|este|esta|su|sus|egli|lui|lei|essi|questo|"
    r"questa|ele|ela|eles|elas|isto|он|она|оно|они|это|этот|эта|hij|zij|het|dit|deze)\b|[他她它这這那此彼]|これ|それ|यह|वह|ये|वे)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence: the place of its passage among the passages, its span in the passage's text, its terms and weight."""

    passage: int
    start: int
    end: int
    terms: frozenset[str]
    weight: float


def focus(passages: Sequence[Passage], question: str) -> tuple[Passage, ...]:
    """Return the sentences that match a question best, in the order of the passages, each run of neighbours as one.

    The best few come into focus and some more that match about as well, none that matches much less well than the best
    one, each with the sentence before it if it begins with a pronoun. A returned passage is a span of the one that
    has its number; its `start` is its place in the file. Where no sentence has more than a common word of the question
    ("Summarise the report"), nothing is in focus.

    >>> lamp = Passage(1, "lamp.txt", "0", 0, "Oil is dear. The man winds the lamp. This happens at night. Gulls cry.")
    >>> [each.text for each in focus([lamp], "When does the man wind the lamp at night?")]
    ['The man winds the lamp. This happens at night.']
    """
    found = _candidates(passages)
    chosen = set(_best(found, question))
    for place in sorted(chosen, reverse=True):
        while place and _refers(found, place, passages):
            place -= 1
            chosen.add(place)
    return tuple(_runs(sorted(chosen), found, passages))


def _candidates(passages: Sequence[Passage]) -> list[_Candidate]:
    power = thresholds.FOCUS_PASSAGE_POWER
    return [
        _Candidate(place, start, end, frozenset(stems(passage.text[start:end])), passage.weight**power)
        for place, passage in enumerate(passages)
        for start, end in sentence_spans(passage.text)
    ]


def _best(candidates: Sequence[_Candidate], question: str) -> list[int]:
    """Return the places of the candidates in focus, the best first; only those with a word of the question."""
    holding = Counter(term for each in candidates for term in each.terms)
    weights = {term: _rarity(term, holding[term], len(candidates)) for term in stems(question)}
    scores = [each.weight * sum(weights[term] for term in each.terms & weights.keys()) for each in candidates]
    if max(scores, default=0) < thresholds.FOCUS_COVERED * sum(weights.values()):
        return []
    matching = [place for place, score in enumerate(scores) if score]
    fine = {place: scores[place] - thresholds.FOCUS_LENGTH_COST * len(candidates[place].terms) for place in matching}
    ranked = sorted(matching, key=lambda place: (-fine[place], place))
    ranked = [place for place in ranked if scores[place] >= thresholds.FOCUS_FAINT * scores[ranked[0]]]
    many = min(thresholds.FOCUS_USUAL, len(ranked))
    alike = thresholds.FOCUS_ALIKE if all(each.weight == 1 for each in candidates) else thresholds.FOCUS_ALIKE_FOUND
    while many < min(thresholds.FOCUS_MOST, len(ranked)) and scores[ranked[many]] >= alike * scores[ranked[many - 1]]:
        many += 1
    return ranked[:many]


def _rarity(term: str, holding: int, of: int) -> float:
    """Return how rare a term is among the candidates, as BM25 weighs it; a short word counts less."""
    rare = math.log(1 + (of - holding + 0.5) / (holding + 0.5))
    is_short = len(term) <= thresholds.FOCUS_SHORT_LETTERS and term.isalpha() and term.islower()
    return rare * thresholds.FOCUS_SHORT_PART if is_short else rare


def _refers(candidates: Sequence[_Candidate], place: int, passages: Sequence[Passage]) -> bool:
    """Test if a candidate begins with a pronoun, behind another one of its passage."""
    each, before = candidates[place], candidates[place - 1]
    return each.passage == before.passage and _REFERRING.match(passages[each.passage].text, each.start) is not None


def _runs(chosen: Sequence[int], candidates: Sequence[_Candidate], passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield a passage for each run of neighbouring candidates of one passage."""
    at = 0
    while at < len(chosen):
        last = at
        while last + 1 < len(chosen) and _neighbours(candidates, chosen[last], chosen[last + 1]):
            last += 1
        first, end = candidates[chosen[at]], candidates[chosen[last]].end
        whole = passages[first.passage]
        yield replace(whole, start=whole.start + first.start, text=whole.text[first.start : end])
        at = last + 1


def _neighbours(candidates: Sequence[_Candidate], one: int, other: int) -> bool:
    return other == one + 1 and candidates[one].passage == candidates[other].passage
