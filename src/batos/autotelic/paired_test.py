"""Paired tests: whether a new form answers better than the old one, decided while the questions are being asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

#: The shares that are wagered; the mean over them needs no tuning (Waudby-Smith and Ramdas, arXiv 2010.09686).
_WAGERS: Final = tuple(share / 20 for share in range(1, 20))
#: The evidence of harm, and that no gain is left to hope for, at which a trial is given up: that needs no guarantee.
HARMED, _HOPELESS = 5.0, 10.0
#: The gain that a trial looks for: a smaller one is not found with the questions that there are.
_HOPE: Final = 0.10
#: The evidence that a guard has not fallen by more than its margin, and that one kind of question has become worse.
_GUARDED, _CLASS_HARMED = 10.0, 10.0
#: The most by which the share of answers that the gate lets pass, and of missions that end, may fall.
_MARGINS: Final = {"gate": 0.10, "end": 0.05}
#: The most tokens that all answers may cost, as a factor of the old ones', and the gain that pays for each added call.
_COST, _CALL_GAIN = 1.3, 0.05

Word: TypeAlias = Literal["go on", "promote", "drop", "spent"]


def evidence(differences: Iterable[float], than: float = 0.0, *, falls: bool = False) -> float:
    """Return the e-value against "the mean of differences is at most `than`" (with `falls`: at least).

    Differences are in [-1, 1]. If the statement is true, the value ever reaches 1/a with a probability of at most a
    (Ville), so it may be looked at after each difference.

    >>> round(evidence([1.0] * 7), 1), round(evidence([1.0, -1.0] * 20), 3)
    (30.3, 0.178)
    """
    sign, cap = -1 if falls else 1, 1 / (1 + abs(than))
    logs = [0.0] * len(_WAGERS)
    for difference in differences:
        gain = sign * (difference - than) * cap
        logs = [log + math.log1p(wager * gain) for log, wager in zip(logs, _WAGERS, strict=True)]
    top = max(logs)
    return math.exp(top) * sum(math.exp(log - top) for log in logs) / len(logs)


@dataclass(frozen=True, slots=True)
class PairedAnswer:
    """The answers of both forms to one question: their worth in [0, 1], and what they cost.

    `passed` and `ended` are whether the gate let each pass and whether each mission ended, the new form first.
    """

    item: str
    kind: str
    new: float
    old: float
    passed: tuple[bool, bool] = (True, True)
    ended: tuple[bool, bool] = (True, True)
    calls: tuple[int, int] = (1, 1)
    tokens: tuple[int, int] = (0, 0)

    @property
    def difference(self) -> float:
        """Return by how much the new form's answer is better; a mission that failed answered nothing."""
        return self.new - self.old


class TrialAnswer(NamedTuple):
    """The answers of both forms to one question: what is counted of them, and the missions that have their words."""

    pair: PairedAnswer
    before: str
    after: str


class ScreenAnswer(NamedTuple):
    """The worth of the answer of the acting form, and of each candidate's behind it, and how many of these differ."""

    worth: tuple[float, ...]
    changed: int


class TrialRules(NamedTuple):
    """The evidence at which a change is kept, and the most questions that are asked."""

    win: float = 20.0
    limit: int = 300


class TrialDecision(NamedTuple):
    """The word on a trial so far, the reason in a few words, the evidence for a gain, and the counted questions."""

    word: Word
    reason: str
    evidence: float
    wins: int
    losses: int


def decide(pairs: Sequence[PairedAnswer], rules: TrialRules) -> TrialDecision:
    """Decide about a trial after these answers, in the order in which they were given."""
    differences = [each.difference for each in pairs]
    gain = evidence(differences)
    word, reason = _decide(pairs, differences, gain, rules)
    wins, losses = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return TrialDecision(word, reason, gain, wins, losses)


def _decide(
    pairs: Sequence[PairedAnswer], differences: Sequence[float], gain: float, rules: TrialRules
) -> tuple[Word, str]:
    if evidence(differences, falls=True) >= HARMED:
        return "drop", "the answers got worse"
    if kind := find_worse_kind(pairs):
        return "drop", f"questions of the kind {kind} got worse"
    if gain >= rules.win:
        missing = _find_unproven_guard(pairs)
        if not missing:
            dear = find_excess(pairs)
            return ("drop", dear) if dear else ("promote", "the answers got better")
        if len(pairs) >= rules.limit:
            return "spent", f"better, but it is not shown that {missing} held"
        return "go on", f"better; it is not shown yet that {missing} held"
    if evidence(differences, _HOPE, falls=True) >= _HOPELESS:
        return "drop", f"no gain of {_HOPE:g} is left to hope for"
    return ("spent", "no difference was shown") if len(pairs) >= rules.limit else ("go on", "")


def find_worse_kind(pairs: Sequence[PairedAnswer]) -> str:
    """Return the first kind of question that got worse, whatever all of them did; "" if none did."""
    for kind in sorted({each.kind for each in pairs}):
        if evidence((each.difference for each in pairs if each.kind == kind), falls=True) >= _CLASS_HARMED:
            return kind
    return ""


def _find_unproven_guard(pairs: Sequence[PairedAnswer]) -> str:
    """Return the first guard of which it is not shown that it fell by at most its margin; "" if all held."""
    shares = {
        "gate": [float(new) - float(old) for new, old in (each.passed for each in pairs)],
        "end": [float(new) - float(old) for new, old in (each.ended for each in pairs)],
    }
    names = {"gate": "the share that passes the gate", "end": "the share that ends"}
    return next((names[name] for name, each in shares.items() if evidence(each, -_MARGINS[name]) < _GUARDED), "")


def find_excess(pairs: Sequence[PairedAnswer]) -> str:
    """Return why the new form is too dear for what it gains; "" if it is not."""
    tokens = [sum(each.tokens[place] for each in pairs) for place in (0, 1)]
    calls = [sum(each.calls[place] for each in pairs) / max(1, len(pairs)) for place in (0, 1)]
    gain = sum(each.difference for each in pairs) / max(1, len(pairs))
    if tokens[0] <= _COST * tokens[1] and calls[0] <= calls[1]:
        return ""
    is_paid = gain >= _CALL_GAIN * max(1.0, calls[0] - calls[1])
    return "" if is_paid else f"it gains {gain:.2f} for {tokens[0] / max(1, tokens[1]):.1f} times the tokens"


def threshold(tries: int) -> float:
    """Return the evidence that the next trial of a lever needs after so many: a null that is retried enough would pass.

    The sum of 1/threshold over all trials of a lever is 1/20.

    >>> threshold(0), threshold(1), threshold(2)
    (40.0, 120.0, 240.0)
    """
    return 20.0 * (tries + 1) * (tries + 2)
