"""Sums up scored answers by arm, kind, language and group, and sets the goals of the arms beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from report import Goal
from tasks_arms_side import BARE, TaskAnswer
from tasks_data_side import GROUPS
from tasks_side import Task, TaskScore

#: Billions of parameters below which only the loss of a group is a goal; a billion and more is to gain.
CAPABLE: Final = 1.0
GAIN, LOSS, SMALL_LOSS = 0.08, 0.03, 0.05
#: The groups that are to gain by so much.
HELPED: Final = ("reckoning", "restraint")
HELP = 0.15
#: Folders: against the model with all notes pasted, where these fit and where they are three times the window.
PASTED_FITS, PASTED_LONG, LONG = -0.02, 0.15, 3.0
FALSE_ALARMS, ALARMS = 0.03, 0.5
TOKENS: Final[Mapping[str, float]] = {"reflex": 1.25, "auto": 1.5}
SECONDS = 1.25


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """A task with an answer to it and the answer's score."""

    task: Task
    answer: TaskAnswer
    scored: TaskScore


def share(of: Sequence[Any], held: Callable[[Any], float]) -> float | None:
    """Return the mean over several; None if there are none."""
    return round(sum(held(each) for each in of) / len(of), 4) if of else None


def scores(rows: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Return how many answers there are, and their shares."""
    return {
        "n": len(rows),
        "right": share(rows, lambda each: each.scored.right),
        "score": share(rows, lambda each: each.scored.score),
        "content": share(rows, lambda each: each.scored.content),
    }


def figures(rows: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Return the figures of an arm; tokens and seconds are those of a task in the mean."""
    judged = [each for each in rows if each.answer.faulty is not None]
    right = [each for each in judged if each.scored.right]
    wrong = [each for each in judged if each.scored.misses_a_value and each.answer.text.strip()]
    return {
        **scores(rows),
        "by_kind": _by(rows, lambda each: each.task["kind"]),
        "by_language": _by(rows, lambda each: each.task["language"]),
        "by_group": {
            name: scores(found)
            for name, kinds in GROUPS.items()
            if (found := [each for each in rows if each.task["kind"] in kinds])
        },
        "tokens": share(rows, lambda each: each.answer.tokens),
        "seconds": share(rows, lambda each: each.answer.seconds),
        "calls": sum(each.answer.calls for each in rows),
        "failed": sum(bool(each.answer.failed) for each in rows),
        "failures": sorted({each.answer.failed for each in rows if each.answer.failed}),
        "alarms_on_right": share(right, lambda each: bool(each.answer.faulty)),
        "alarms_on_wrong": share(wrong, lambda each: bool(each.answer.faulty)),
    }


def _by(rows: Sequence[ScoredAnswer], key: Callable[[ScoredAnswer], str]) -> dict[str, Any]:
    return {name: scores([each for each in rows if key(each) == name]) for name in sorted(set(map(key, rows)))}


Figures = Mapping[str, Mapping[str, Any]]


def goals_of(values: Mapping[str, Any]) -> list[Goal]:
    """Return the goals of what was measured; one of a share that could not be measured is left out."""
    arms: Figures = values["arms"]
    folder: Figures = values["folder"]
    goals = [
        Goal(f"missions that failed: {name}", arm["failed"] + folder.get(name, {}).get("failed", 0), 0)
        for name, arm in arms.items()
    ]
    for name, arm in arms.items():
        if arm["alarms_on_right"] is not None:
            goals.append(Goal(f"alarms on right answers: {name}", arm["alarms_on_right"], FALSE_ALARMS))
        if arm["alarms_on_wrong"] is not None:
            goals.append(Goal(f"alarms on wrong values: {name}", arm["alarms_on_wrong"], ALARMS, "at_least"))
    if BARE in arms and arms[BARE]["n"]:
        for name in TOKENS:
            goals += _beside_bare(name, arms, values["parameters"]) if name in arms else []
    if BARE in folder and folder[BARE]["n"]:
        goals += [each for name in TOKENS if name in folder for each in _in_folder(name, folder, values["windows"])]
    if {"reflex", "auto"} <= arms.keys() and arms["reflex"]["n"]:
        goals.append(Goal("right: auto beside reflex", arms["auto"]["right"], arms["reflex"]["right"], "at_least"))
    return goals


def _beside_bare(name: str, arms: Figures, parameters: int) -> list[Goal]:
    """Return the goals of an arm beside the model itself, with files attached."""
    bare, arm = arms[BARE], arms[name]
    is_small = 0 < parameters < CAPABLE * 10**9
    goals = [] if is_small or name != "reflex" else [_least(f"right: {name}", arm["right"], bare["right"] + GAIN)]
    for group, found in bare["by_group"].items():
        gain = HELP if group in HELPED else -LOSS
        least = found["content"] + (-SMALL_LOSS if is_small else gain)
        goals.append(_least(f"content of {group}: {name}", arm["by_group"][group]["content"], least))
    for figure, most in (("tokens", TOKENS[name]), ("seconds", SECONDS)):
        if bare[figure]:
            goals.append(Goal(f"{figure} over bare: {name}", round(arm[figure] / bare[figure], 4), most))
    return goals


def _in_folder(name: str, folder: Figures, windows: float) -> list[Goal]:
    """Return the goals of an arm over remembered notes, of which there are so many windows."""
    more = PASTED_LONG if windows >= LONG else PASTED_FITS
    return [
        _least(f"{figure} of folders: {name}", folder[name][figure], folder[BARE][figure] + more)
        for figure in ("right", "content")
    ]


def _least(name: str, value: float, goal: float) -> Goal:
    """Return a goal that is a share, at most all."""
    return Goal(name, value, round(min(goal, 1.0), 4), "at_least")
