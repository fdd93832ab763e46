"""The weights of the metric: how people's verdicts on answers move them, in small steps that keep every part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import correlation
from typing import Final, NamedTuple, TypeAlias, cast

from batos.autotelic.entropy import WEIGHTS
from batos.image.roots import Root
from batos.protocol.errors import BriefError
from batos.protocol.motion_documents import EntropyPart, EntropyParts
from batos.records import redefinitions
from batos.records.redefinitions import Value

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
