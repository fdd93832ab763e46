"""The router: which persona leads, with how much effort, decided on the CPU from the words alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from batos.cognition.evidence import words

#: A trigger weighs as much as this many exemplars that contain it.
TRIGGER_WEIGHT = 3
#: Questions of up to this many words, without files, are answered by one call.
REFLEX_WORDS = 6
_SMOOTHING = 0.3


@dataclass(frozen=True, slots=True)
class Route:
    """Who takes a mission and how; `scores` of all personas sum to 1."""

    personas: tuple[str, ...]
    effort: str
    confidence: float
    reason: str
    scores: Mapping[str, float]

    def as_dict(self) -> dict[str, object]:
        """CONTRACT's `route`."""
        return {
            "personas": list(self.personas),
            "effort": self.effort,
            "confidence": round(self.confidence, 3),
            "reason": self.reason,
            "scores": {name: round(score, 3) for name, score in self.scores.items()},
        }


@dataclass(frozen=True, slots=True)
class Lesson:
    """What the codex says of a persona's questions."""

    persona: str
    triggers: Sequence[str]
    exemplars: Sequence[str]


def features(text: str) -> Counter[str]:
    """Words, pairs of words, and runs of four characters (which carry over to unknown forms of a word)."""
    found = words(text)
    line = f" {' '.join(found)} "
    runs = (f"~{line[i : i + 4]}" for i in range(len(line) - 3))
    return Counter((*found, *(" ".join(pair) for pair in pairwise(found)), *runs))


class Router:
    """Multinomial naive Bayes over the codex's triggers and exemplars; made anew when the codex changes."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._triggers = {lesson.persona: tuple(lesson.triggers) for lesson in lessons}
        counts = {lesson.persona: _count(lesson) for lesson in lessons}
        self._vocabulary = set().union(*counts.values()) if counts else set()
        self._weights = {name: self._logs(count) for name, count in counts.items()}

    def _logs(self, count: Counter[str]) -> tuple[dict[str, float], float]:
        total = sum(count.values()) + _SMOOTHING * (len(self._vocabulary) + 1)
        logs = {feature: math.log((number + _SMOOTHING) / total) for feature, number in count.items()}
        return logs, math.log(_SMOOTHING / total)

    def route(self, text: str, *, files: int = 0, persona: str | None = None, effort: str | None = None) -> Route:
        """A decision, the same for the same text; `persona` and `effort` given by the asker win."""
        scores = self._scores(text)
        leader = persona or max(scores, key=lambda name: scores[name])
        return Route(
            (leader,),
            effort or _effort(text, files),
            1.0 if persona else scores[leader],
            "the asker chose" if persona else self._reason(leader, text),
            scores,
        )

    def _scores(self, text: str) -> dict[str, float]:
        known = {feature: n for feature, n in features(text).items() if feature in self._vocabulary}
        sums = {
            name: sum(n * logs.get(feature, absent) for feature, n in known.items())
            for name, (logs, absent) in self._weights.items()
        }
        # Features overlap, so their evidence is counted several times over: the root keeps confidence honest.
        damping = 1 + math.sqrt(sum(known.values()))
        top = max(sums.values())
        raised = {name: math.exp((value - top) / damping) for name, value in sums.items()}
        total = sum(raised.values())
        return {name: value / total for name, value in raised.items()}

    def _reason(self, leader: str, text: str) -> str:
        line = f" {' '.join(words(text))} "
        said = [each for each in self._triggers[leader] if f" {' '.join(words(each))} " in line]
        if said:
            return f"it says {', '.join(repr(each) for each in said[:3])}"
        return f"it is worded like what {leader} is asked"


def _count(lesson: Lesson) -> Counter[str]:
    counts: Counter[str] = Counter()
    for exemplar in lesson.exemplars:
        counts.update(features(exemplar))
    for trigger in lesson.triggers:
        for feature, number in features(trigger).items():
            counts[feature] += number * TRIGGER_WEIGHT
    return counts


def _effort(text: str, files: int) -> str:
    return "reflex" if not files and len(words(text)) <= REFLEX_WORDS else "cycle"
