"""Measures what a mind with a real small model learns: its sealed questions before and after some nights of trials."""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Final

from batos.autotelic import trials
from batos.autotelic.heartbeat import Expense
from batos.inference.ollama.bridge import Bridge
from batos.records.gold_items import ItemSplit
from batos.version import __version__
from motion_real_side import (
    Class,
    RunStopped,
    Setting,
    acting,
    asker_of,
    learn,
    list_questions,
    put_questions,
    sweep,
    tell,
)  # fmt: skip
from report import Goal
from tasks_arms_side import look_up_model, opened_home, remember_folder
from tasks_data_side import KeptLines, digest_of, read_data, user_cache
from voice_side import daemon

#: The least distance of the best setting from the worst one, where there is something to learn.
LEARNABLE: Final = 0.08
#: Samples of the questions for the lower bound of a mean, and its share of the samples.
SAMPLES, LOWER = 2000, 0.1


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A trial whose value was kept, with the values before and after it."""

    name: str
    lever: str
    state: str
    before: Setting
    after: Setting


def list_promoted(of: Class, start: Setting) -> list[KeptChange]:
    """Return each trial whose value acted at some time, the oldest first."""
    found, now = list[KeptChange](), dict(start)
    with of.uvm.image.snapshot() as root:
        for name in root["trials"]:
            told = trials.document(root, name)
            if told["state"] in trials.STANDING or (told["state"] == "undone" and told["probed"]):
                before = {**now, **{each.slot: each.value for each in trials.before_of(root, name)}}
                after = {**before, **{each.slot: each.value for each in trials.candidates_of(root, name)[0]}}
                found.append(KeptChange(name, told["lever"], told["state"], before, after))
                now = after if told["state"] in trials.STANDING else before
    return found


def list_tried(of: Class) -> list[dict[str, Any]]:
    """Return each trial with its state and what its questions came to, the oldest first."""
    with of.uvm.image.snapshot() as root:
        told = [trials.document(root, name) for name in root["trials"]]
    names = ("lever", "state", "reason", "screened", "asked", "wins", "losses", "evidence", "needed", "calls", "tokens")
    return [{name: each[name] for name in names} for each in told]  # type: ignore[literal-required]


def lower_bound(differences: Sequence[float]) -> float:
    """Return the value above which the mean is with 90 %, by samples of the questions.

    >>> lower_bound([0.5] * 20), lower_bound([0.0, 1.0] * 20) < 0.5
    (0.5, True)
    """
    draw = random.Random(7)
    means = sorted(fmean(draw.choices(differences, k=len(differences))) for _ in range(SAMPLES))
    return round(means[int(LOWER * SAMPLES)], 4)


@dataclass(slots=True)
class LearningFigures:
    """The figures of a run; None where it did not come so far."""

    start: float | None = None
    end: float | None = None
    frozen: float | None = None
    best_fixed: float | None = None
    calls: int = 0
    promotions: int | None = None
    of_the_way: float | None = None
    lower_bound: float | None = None
    worst_promotion: float | None = None
    kept: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    questions: dict[str, int] = field(default_factory=dict)
    #: Where the run ended: `whole`, `nothing to learn`, or the part in which its calls were spent.
    ended: str = "sweep"
    calls_made: int = 0
    changed: dict[str, list[str]] = field(default_factory=dict)


async def run(of: Class, nights: int, most: int, budget: Expense) -> dict[str, Any]:
    """Sweep, learn and measure, as far as the calls go; return the figures."""
    parts: Sequence[ItemSplit] = ("propose", "judge", "sealed")
    found = LearningFigures(questions={part: len(of.pick(part, most * (part != "judge"))) for part in parts})
    tell_expected(of, found.questions, nights, budget)
    try:
        await _run(of, found, nights, most, budget)
    except RunStopped as stopped:
        tell(f"The run ends in the part `{found.ended}`, because {stopped}. With --resume it goes on from here.")
    found.tried = list_tried(of)
    found.calls, found.calls_made = of.asker.calls, of.asker.made
    return asdict(found)


def tell_expected(of: Class, questions: Mapping[str, int], nights: int, budget: Expense) -> None:
    """Tell how many questions the run asks at most, before it begins."""
    values = 1 + sum(len(each.others) for each in of.levers())
    swept, sealed = values * questions["propose"], 4 * questions["sealed"]
    tell(
        f"Questions: {questions}. At most {swept} in the sweep, {sealed} sealed ones and {questions['sealed']} for each"
        f" promotion, {nights} nights of at most {budget.calls} calls; {len(of.asker.results.rows)} answers are kept."
    )


async def _run(of: Class, found: LearningFigures, nights: int, most: int, budget: Expense) -> None:
    start, best = await sweep(of, most)
    found.changed = {name: [repr(start[name]), repr(best[name])] for name in start if start[name] != best[name]}
    found.ended = "sealed questions before"
    first = await of.measure(start, most)
    found.start, found.best_fixed = _mean_of(first), _mean_of(await of.measure(best, most))
    tell(f"start {found.start}, best fixed {found.best_fixed}")
    if found.best_fixed - found.start < LEARNABLE:
        found.ended = "nothing to learn"
        return
    found.ended = "nights"
    await of.give(start)
    await learn(of, nights, budget)
    found.ended = "sealed questions after"
    last = await of.measure(acting(of.uvm), most, "after")
    found.end, found.frozen = _mean_of(last), _mean_of(await of.measure(start, most, "after"))
    found.of_the_way = round((found.end - found.start) / (found.best_fixed - found.start), 4)
    found.lower_bound = lower_bound([new - old for new, old in zip(last, first, strict=True)])
    for each in list_promoted(of, start):
        before, after = await of.measure(each.before, most), await of.measure(each.after, most)
        effect = _mean_of([new - old for new, old in zip(after, before, strict=True)])
        found.kept.append({"trial": each.name, "lever": each.lever, "state": each.state, "effect": effect})
    found.promotions = len(found.kept)
    found.worst_promotion = min((each["effect"] for each in found.kept), default=0.0)
    found.ended = "whole"


def _mean_of(values: Sequence[float]) -> float:
    return round(fmean(values), 4)


async def measure_real(given: argparse.Namespace) -> dict[str, Any]:
    """Let a mind with a real model learn; return the figures."""
    data = read_data(given.data)
    voice = argparse.Namespace(url=None, gguf=given.real)
    results = KeptLines(given.results or user_cache() / "motion-real.jsonl")
    if not given.resume:
        results.rows.clear()
    async with daemon(voice) as url, Bridge(url) as bridge, opened_home(url, 0, {"profile": "default"}) as uvm:
        model = await look_up_model(uvm, bridge)
        await remember_folder(uvm, data.documents, vectors=False)
        items = list_questions(data, uvm.settings.asker)
        await uvm.image.shared.apply(lambda root: put_questions(root, items))
        asker = asker_of(uvm, results, [model.digest, digest_of(dict(data.documents)), __version__], given.calls)
        of = Class(uvm, asker, items, {each["question"]: each for each in data.tasks})
        settings = uvm.settings
        budget = Expense(float("inf"), settings.heartbeat_calls, settings.heartbeat_tokens)
        found = await run(of, 1 if given.quick else given.nights, 6 if given.quick else given.n, budget)
    return {"bench": "motion", "real": str(given.real), "parameters": model.parameters, **found}


def real_goals(found: Mapping[str, Any]) -> list[Goal]:
    """Return what the figures of a real model should be; none where there was nothing to learn."""
    known = (("of_the_way", 0.6), ("lower_bound", 0.0001), ("worst_promotion", -0.05))
    return [Goal(name, found[name], goal, "at_least") for name, goal in known if found["ended"] != "nothing to learn"]
