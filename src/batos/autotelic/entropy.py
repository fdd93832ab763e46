"""The Composite Entropy Metric: four parts of an answer's worth, each a pure function into [0, 1], and their sum.

The metric may wake, point and show, and never decides what is kept: each part can be raised by worse answers, and has
a guard against the way in which that is cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, harmonic_mean, median
from typing import Final, NamedTuple, TypeAlias

from batos.memory.segmentation import stems
from batos.memory.words_by_language import COMMON_STEMS
from batos.protocol.motion_documents import EntropyPart, EntropyParts

#: The words of a text that say what it is about, as a set of stems.
Content: TypeAlias = frozenset[str]

#: The weights before any outcome has moved them.
WEIGHTS: Final[Mapping[EntropyPart, float]] = {"Hrel": 0.4, "Hcog": 0.2, "Hsol": 0.2, "Hstruc": 0.2}
#: The share of a sentence's words that the question has too, from which on it only says the question back.
ECHO: Final = 0.8
#: The unlikeness of sentences from which on more of it is no more diversity: the rest would reward drift.
_MOST_UNLIKE: Final = 0.8
#: The likeness of two questions from which on their answers are compared, and from which on they are one question.
SIMILAR, SAME = 0.6, 0.8
#: The days after which a use of structure counts half, and the uses in 100 missions that give 1 - 1/e.
HALF_LIFE, _USUAL_USES = 30.0, 50.0


class SentenceFacts(NamedTuple):
    """A sentence of an answer: its words, whether documents carry it, and the words of the sentences that do."""

    words: Content
    state: str
    evidence: Content = frozenset()


class AnswerFacts(NamedTuple):
    """All that the metric reads of an answer."""

    question: Content
    sentences: tuple[SentenceFacts, ...]
    #: The gate found no fault.
    passed: bool
    #: The answers of the voices that the answer was made of; none of a reflex.
    parts: tuple[Content, ...] = ()
    #: The number of sub-questions, and of those that nothing answered.
    queries: int = 0
    unanswered: int = 0


def content(text: str) -> Content:
    """Return the words of a text that say what it is about.

    >>> sorted(content("The lamp of the lighthouse was lit in 1889."))
    ['1889', 'lamp', 'lighth', 'lit']
    """
    return frozenset(stem for stem in stems(text) if stem not in COMMON_STEMS and (len(stem) > 1 or not stem.isascii()))


def likeness(one: Content, other: Content) -> float:
    """Return the cosine of two sets of words, in [0, 1]."""
    return len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0


def relevance(answer: AnswerFacts, consistency: float | None = None) -> float | None:
    """Return Hrel: how far carried sentences meet the question, and how much of the answer is carried or new.

    The harmonic mean of both, and of `consistency` if an equal question had an answer before. 0 if the gate found a
    fault; None where there was nothing that could carry it, and of an answer that documents carry but that only says
    the question back: that may be a yes.

    Sentences that say the question back are left out first, else an echo would be the best answer. The words of the
    evidence count for a short answer, so that "In 1889" has what its sentence says.
    """
    if not answer.passed:
        return 0.0
    if not any(each.state != "not_checkable" for each in answer.sentences):
        return None
    own = [each for each in answer.sentences if not _is_echo(each, answer.question)]
    carried = [each for each in own if each.state == "carried"]
    if not carried:
        is_echo = not own and all(each.state == "carried" for each in answer.sentences)
        return None if is_echo else 0.0
    held = sum(each.state == "carried" or (each.state == "not_checkable" and bool(each.words)) for each in own)
    measured = [_coverage(answer, carried), held / len(own)]
    return harmonic_mean(measured if consistency is None else [*measured, consistency])


def _is_echo(sentence: SentenceFacts, question: Content) -> bool:
    """Test if a sentence has hardly a word that the question has not."""
    return bool(sentence.words) and len(sentence.words - question) <= (1 - ECHO) * len(sentence.words)


def _coverage(answer: AnswerFacts, carried: Sequence[SentenceFacts]) -> float:
    met = frozenset[str]().union(*(each.words | each.evidence for each in carried))
    shares = [len(answer.question & met) / len(answer.question)] if answer.question else []
    if answer.queries:
        shares.append(1 - answer.unanswered / answer.queries)
    return fmean(shares) if shares else 1.0


def diversity(answer: AnswerFacts) -> float | None:
    """Return Hcog: how evenly, and with how different sentences, the voices stand in an answer of several.

    The entropy of the shares that voices have of the carried sentences, times the mean unlikeness of these. Only what
    survived into the answer and is carried counts. None for an answer of one voice: else the metric would send each
    question to a council.
    """
    carried = [each.words for each in answer.sentences if each.state == "carried" and each.words]
    if len(answer.parts) < 2 or not any(each.state != "not_checkable" for each in answer.sentences):
        return None
    if len(carried) < 2:
        return 0.0
    counts = [0] * len(answer.parts)
    for each in carried:
        near = [likeness(each, part) for part in answer.parts]
        counts[near.index(max(near))] += 1
    shares = [count / len(carried) for count in counts if count]
    evenness = -sum(share * math.log(share) for share in shares) / math.log(len(answer.parts))
    pairs = [1 - likeness(one, other) for at, one in enumerate(carried) for other in carried[at + 1 :]]
    return min(1.0, max(0.0, evenness * min(fmean(pairs), _MOST_UNLIKE) / _MOST_UNLIKE))


def novelty(answer: AnswerFacts, earlier: Collection[float]) -> float | None:
    """Return Hsol: how new a carried answer is beside those to similar questions, whose likenesses to it are `earlier`.

    0 of an answer that the gate or no document holds: words at random are new too, and so is an echo. None where
    nothing could carry it.
    """
    checkable = [each for each in answer.sentences if each.state != "not_checkable"]
    if not checkable:
        return None
    carried = [each for each in checkable if each.state == "carried" and not _is_echo(each, answer.question)]
    return len(carried) / len(checkable) * (1 - max(earlier, default=0.0)) if answer.passed else 0.0


def structure(used: float, missions: float) -> float | None:
    """Return Hstruc: how much structure missions use, from the sums of uses for a call and of missions, both fading.

    A use is a link that led to a cited passage, a method that ran without a fault, or a protocol that was kept; of a
    mission that was undone it counts against. Growth alone counts nothing. None: there is no mission.

    >>> structure(0.0, 1.0), round(structure(1.0, 2.0), 3), structure(0.0, 0.0)
    (0.0, 0.632, None)
    """
    return 1 - math.exp(-max(0.0, 100 * used / missions) / _USUAL_USES) if missions else None


def parts_of(values: Mapping[EntropyPart, float | None], decimals: int = 4) -> EntropyParts:
    """Return the parts that are defined, rounded.

    >>> parts_of({"Hrel": 0.51239, "Hcog": None})
    {'Hrel': 0.5124}
    """
    found = EntropyParts()
    for part, value in values.items():
        if value is not None:
            found[part] = round(value, decimals)
    return found


def composite(parts: EntropyParts, weights: Mapping[EntropyPart, float] = WEIGHTS) -> float | None:
    """Return the weighted mean of the parts that are defined; None if none is.

    >>> composite({"Hrel": 0.5}), composite({"Hrel": 1.0, "Hcog": 0.0})
    (0.5, 0.6666666666666666)
    """
    values = _values(parts)
    weight = sum(weights[part] for part in values)
    return sum(weights[part] * value for part, value in values.items()) / weight if weight else None


def medians(rows: Sequence[EntropyParts]) -> dict[EntropyPart, float | None]:
    """Return the median of each part over the rows that have it; None where none has."""
    return {
        part: median(values) if (values := [row[part] for row in rows if part in row]) else None for part in WEIGHTS
    }


def _values(parts: EntropyParts) -> dict[EntropyPart, float]:
    return {part: parts[part] for part in WEIGHTS if part in parts}
