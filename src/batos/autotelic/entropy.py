"""The Composite Entropy Metric: four parts of an answer's worth, each a function into [0, 1], weights, and decay.

The metric may wake, point and show, and never decides what is kept: each part can be raised by worse answers, and has
a guard against the way in which that is cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import correlation, fmean, harmonic_mean, median, stdev
from typing import Final, NamedTuple, TypeAlias, cast

from batos.image.roots import Root
from batos.memory.segmentation import stems
from batos.memory.words_by_language import COMMON_STEMS
from batos.protocol.errors import BriefError
from batos.protocol.motion_documents import EntropyPart, EntropyParts
from batos.records import redefinitions
from batos.records.redefinitions import Value

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


#: The first days of a line, which the later ones are compared with; fewer are no baseline.
BASE: Final = 30
#: The drop that is no drop, and the sum of larger ones that is an alarm, in standard deviations (Page 1954): once in
#: some 540 days where nothing falls, within 9 days at the median where the mean falls by one deviation.
_SLACK, _ALARM = 0.5, 5.0
#: The days without a change from which on a line stands still, and the slope that is none, in deviations a week.
STILL_DAYS, _STILL_SLOPE = 21, 0.1
#: The least deviation, of a line that never moved.
_LEAST: Final = 1e-9


class Beginning(NamedTuple):
    """The mean and the standard deviation of the first days of a line."""

    mean: float
    deviation: float


def read_beginning(values: Sequence[float], days: int = BASE, least: float = _LEAST) -> Beginning | None:
    """Return the baseline of a line of day values, its first days; None while it is too short.

    A deviation below the `least` one counts as that.
    """
    first = values[:days]
    return Beginning(fmean(first), max(stdev(first), least)) if len(first) == days else None


def cumulate(values: Sequence[float], beginning: Beginning, most: float = math.inf) -> Iterator[float]:
    """Yield after each value the cumulative sum of the falls below a beginning, from 0 to `most`, in deviations."""
    fallen = 0.0
    for value in values:
        fallen = min(most, max(0.0, fallen + (beginning.mean - value) / beginning.deviation - _SLACK))
        yield fallen


def find_dip(values: Sequence[float]) -> int | None:
    """Return the place of the first day of the fall that raises the alarm, by a one-sided cumulative sum; None: none.

    >>> find_dip([0.6, 0.64] * 15 + [0.62] * 10), find_dip([0.6, 0.64] * 15 + [0.5] * 10)
    (None, 30)
    """
    found = read_beginning(values)
    if found is None:
        return None
    began = BASE
    for place, fallen in enumerate(cumulate(values[BASE:], found), BASE):
        if fallen > _ALARM:
            return began
        if not fallen:
            began = place + 1
    return None


def stands_still(values: Sequence[float]) -> bool:
    """Test if the last days of a line have no slope; high and flat is good, so a caller looks for room above.

    >>> stands_still([0.6, 0.64] * 20), stands_still([0.6, 0.64] * 15 + [0.65 + 0.01 * day for day in range(21)])
    (True, False)
    """
    found = read_beginning(values)
    last = values[-STILL_DAYS:]
    if found is None or len(values) < BASE + STILL_DAYS // 2:
        return False
    middle, mean = (len(last) - 1) / 2, fmean(last)
    spread = sum((day - middle) ** 2 for day in range(len(last)))
    slope = sum((day - middle) * (value - mean) for day, value in enumerate(last)) / spread
    return abs(7 * slope) <= _STILL_SLOPE * found.deviation


Weights: TypeAlias = Mapping[EntropyPart, float]

#: The name of the slot that has them.
NAME: Final = "CEM.weights"
#: The least weight of each part: relevance alone is defended by no other part.
FLOORS: Final[Weights] = {"Hrel": 0.3, "Hcog": 0.05, "Hsol": 0.05, "Hstruc": 0.05}
#: The factor of a correlation in a step, and the most by which a weight moves.
_RATE, STEP = 0.2, 0.05
#: The fewest verdicts on answers that have a part, and the least correlation, that move its weight: the correlation of
#: what has nothing to do with each other has a standard deviation of 0.10 with 100.
LEAST, _CLEAR = 100, 0.2
#: The error of the sum of weights that a person may give, and the halvings by which a sum becomes 1.
_NEAR, _HALVINGS = 1e-6, 60


class AnswerVerdict(NamedTuple):
    """The measure of an answer by part, and the mean of people's verdicts on it, in [-1, 1]."""

    parts: EntropyParts
    outcome: float


def read(root: Root) -> dict[EntropyPart, float]:
    """Return the weights that act."""
    values = redefinitions.list_values(root, NAME)
    return dict(cast("Sequence[tuple[EntropyPart, float]]", values[-1].value)) if values else dict(WEIGHTS)


def as_value(weights: Weights) -> Value:
    """Return weights as the value of their slot."""
    return tuple((part, weights[part]) for part in WEIGHTS)


def check(value: object) -> Value:
    """Return weights that a person gives as the value of their slot. Raises: BriefError: they are none."""
    try:
        given = {str(part): float(weight) for part, weight in dict(cast("Mapping[str, float]", value)).items()}
    except (TypeError, ValueError):
        given = {}
    floors = {str(part): floor for part, floor in FLOORS.items()}
    has_all = given.keys() == floors.keys() and all(given[part] >= floors[part] - _NEAR for part in floors)
    if not has_all or not math.isclose(sum(given.values()), 1.0, abs_tol=_NEAR):
        least = ", ".join(f"{part} {floor:g}" for part, floor in FLOORS.items())
        raise BriefError(
            f"{NAME}: weights are four numbers whose sum is 1",
            field="value",
            remedy=f'Give each part at least its floor ({least}), as {{"Hrel": 0.4, "Hcog": 0.2, ...}}.',
        )
    return as_value(cast("Weights", given))


def tune(weights: Weights, answers: Sequence[AnswerVerdict]) -> tuple[dict[EntropyPart, float], str] | None:
    """Return the weights after a step, and its reason; None if no part's weight is to move.

    A part whose values rise with the verdicts gains weight. A weight moves by at most STEP, and never below its floor.
    """
    found = _correlate(answers)
    if not any(found.values()):
        return None
    told = ", ".join(f"{part} {rank:+.2f}" for part, rank in found.items() if rank)
    return move(weights, found), f"rank correlation with the verdicts on {len(answers)} answers: {told}"


def _correlate(answers: Sequence[AnswerVerdict]) -> dict[EntropyPart, float]:
    """Return the rank correlation of each part with the verdicts; 0 where these are too few, or it is not clear."""
    found: dict[EntropyPart, float] = {}
    for part in WEIGHTS:
        known = [(each.parts[part], each.outcome) for each in answers if part in each.parts]
        rank = rank_correlation(known) if len(known) >= LEAST else 0.0
        found[part] = rank if abs(rank) >= _CLEAR else 0.0
    return found


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the correlation of ranks (Spearman), in [-1, 1]; 0 where one side has one value alone.

    >>> rank_correlation([(0.1, -1), (0.5, 0), (0.9, 1)]), rank_correlation([(0.1, 1), (0.5, 1)])
    (1.0, 0.0)
    """
    one, other = (_ranks([each[side] for each in pairs]) for side in (0, 1))
    return correlation(one, other) if len({*one}) > 1 and len({*other}) > 1 else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones share the mean of theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [sum(places[each]) / len(places[each]) for each in values]


def move(weights: Weights, ranks: Weights) -> dict[EntropyPart, float]:
    """Return the weights after an exponentiated gradient step, within STEP of these, above the floors, with the sum 1.

    >>> moved = move(WEIGHTS, {"Hrel": 0.5, "Hcog": 0.0, "Hsol": 0.0, "Hstruc": -0.5})
    >>> [round(each, 3) for each in moved.values()]
    [0.433, 0.196, 0.196, 0.177]
    """
    grown = {part: weight * math.exp(_RATE * ranks[part]) for part, weight in weights.items()}
    whole = sum(grown.values())
    low = {part: max(FLOORS[part], weight - STEP) for part, weight in weights.items()}

    def shift(by: float) -> dict[EntropyPart, float]:
        return {part: min(weights[part] + STEP, max(low[part], grown[part] / whole + by)) for part in weights}

    least, most = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (middle, most) if sum(shift(middle).values()) < 1 else (least, middle)
    return shift(most)
