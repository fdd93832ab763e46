"""The router: which persona leads, with how much effort, decided on the CPU from the words alone."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from batos.cognition.evidence import terms, words

#: A trigger weighs as much as this many exemplars that contain it.
TRIGGER_WEIGHT = 3
#: How many times an even share of the scores speaks for somebody.
UNDECIDED = 1.2
#: Questions of up to this many words, without files, are answered by one call.
REFLEX_WORDS = 6
#: Characters at the head and the tail of a long text that are looked at: what is asked stands there.
HEAD, TAIL = 1_500, 500
#: The reason of a route whose persona was named.
CHOSEN = "the asker chose"
#: Who takes what happens inside the mind itself.
KEEPER = "ALFRED"
_SMOOTHING = 0.3
_RUN = 4
_CHARACTER = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u2fff]")


@dataclass(frozen=True, slots=True)
class Route:
    """Who takes a mission and how; `scores` of all personas sum to 1."""

    personas: tuple[str, ...]
    effort: str
    confidence: float
    reason: str
    scores: Mapping[str, float]
    #: Texts that were embedded for it.
    embeds: int = 0

    @classmethod
    def noted(cls, value: Mapping[str, Any]) -> Route:
        """The route that `as_dict` gave; nothing was embedded for it now."""
        names = ("personas", "effort", "confidence", "reason", "scores")
        personas, *others = (value[name] for name in names)
        return cls(tuple(personas), *others)

    def overridden(self, persona: str | None, effort: str | None) -> Route:
        """The same with what the asker chose, who wins."""
        effort = effort or self.effort
        if persona is None or self.personas == (persona,):
            return replace(self, effort=effort)
        return replace(self, personas=(persona,), effort=effort, confidence=1.0, reason=CHOSEN)

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
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]


def features(text: str) -> Counter[str]:
    """Words, pairs of words, and runs of four characters (which carry over to unknown forms of a word)."""
    found = words(text)
    line = f" {' '.join(found)} "
    runs = (f"~{line[i : i + _RUN]}" for i in range(len(line) - _RUN + 1))
    pieces = (term for term in terms(text) if not term.isascii())
    return Counter((*found, *(" ".join(pair) for pair in pairwise(found)), *runs, *pieces))


@lru_cache(maxsize=4)
def taught(lessons: tuple[Lesson, ...]) -> Router:
    """The router of these lessons, made once: that takes some 100 ms of CPU, and a codex seldom changes."""
    return Router(lessons)


class Router:
    """Multinomial naive Bayes over the codex's triggers and exemplars; made anew when the codex changes."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._triggers = {lesson.persona: tuple(_line(each) for each in lesson.triggers) for lesson in lessons}
        self._names = tuple(self._triggers)
        counts = [_count(lesson) for lesson in lessons]
        vocabulary = set().union(*counts)
        totals = [count.total() + _SMOOTHING * (len(vocabulary) + 1) for count in counts]
        #: The logarithm of each feature's probability, by persona.
        self._logs = {
            feature: tuple(
                math.log((count[feature] + _SMOOTHING) / total) for count, total in zip(counts, totals, strict=True)
            )
            for feature in vocabulary
        }

    async def route(
        self,
        text: str,
        *,
        files: int = 0,
        persona: str | None = None,
        effort: str | None = None,
        before: str | None = None,
    ) -> Route:
        """A decision, the same for the same text; `persona` and `effort` given by the asker win.

        `before` is the persona that led the conversation's last turn.
        """
        looked_at = f"{text[:HEAD]} {text[-TAIL:]}" if len(text) > HEAD + TAIL else text
        scores = self._scores(looked_at)
        leader = persona or max(scores, key=lambda name: scores[name])
        return Route(
            (leader,),
            effort or _effort(text, files),
            1.0 if persona else scores[leader],
            CHOSEN if persona else self._reason(leader, looked_at, scores[leader]),
            scores,
        )

    def event(self, name: str) -> Route:
        """The route of an event inside the mind: latency, conflict, integrity and whatever else it tells of itself."""
        scores = dict.fromkeys(self._names, 0.0) | {KEEPER: 1.0}
        return Route((KEEPER,), "cycle", 1.0, f"{name} is an event of the mind itself", scores)

    def _scores(self, text: str) -> dict[str, float]:
        sums, seen = [0.0] * len(self._names), 0
        for feature, number in features(text).items():
            logs = self._logs.get(feature)
            if logs is not None:
                seen += number
                sums = [value + number * log for value, log in zip(sums, logs, strict=True)]
        # Features overlap, so their evidence is counted several times over: the root keeps confidence honest.
        damping, top = 1 + math.sqrt(seen), max(sums)
        raised = [math.exp((value - top) / damping) for value in sums]
        return {name: value / sum(raised) for name, value in zip(self._names, raised, strict=True)}

    def _reason(self, leader: str, text: str, score: float) -> str:
        line = _line(text)
        said = [trigger.strip() for trigger in self._triggers[leader] if trigger in line]
        if said:
            return f"it says {', '.join(map(repr, said[:3]))}"
        if score * len(self._names) < UNDECIDED:
            return "its words speak for nobody in particular"
        return f"it is worded like what {leader} is asked"


def _line(text: str) -> str:
    """The words of a text with a blank around each."""
    return f" {' '.join(words(text))} "


def _count(lesson: Lesson) -> Counter[str]:
    counts: Counter[str] = Counter()
    for exemplar in lesson.exemplars:
        counts.update(features(exemplar))
    for trigger in lesson.triggers:
        for feature, number in features(trigger).items():
            counts[feature] += number * TRIGGER_WEIGHT
    return counts


def _effort(text: str, files: int) -> str:
    """A short question without files is a reflex; two characters count as a word where a script has no blanks."""
    characters = len(_CHARACTER.findall(text[:HEAD]))
    size = characters / 2 if characters else len(words(text[:HEAD]))
    return "reflex" if not files and size <= REFLEX_WORDS else "cycle"
