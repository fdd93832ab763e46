"""Fits the thresholds of the gate and of focus by cross-validation over documents and over kinds of several sets.

Each threshold is moved alone, the others as they are. Of --folds shares of the examples each is held out in turn: the
best value for the others is chosen, and its score on the share held out is told beside that of the value in the code.
Folds by document share none; folds by kind share no kind of answer in a language. `gain` is the mean of the differences
and `spread` their standard deviation: a value is better where its gain is above the spread in folds of both sorts. All
sets count the same. A fifth of the documents of each set is kept back from all of this: `sets` has the figures of the
values in the code in two columns, and the last one is for one look at the end.

- carrying: a right answer scores 1 if a sentence that answers is cited, and -1 if only others are (tasks and tables
  have no places: there 1 if anything is cited); a wrong one scores 1 if nothing is. Right ones count three times.
- citing: the same for answers with a clause that is in no document, and what is cited for a part of them.
- alarms: a right answer scores 1 without an alarm, a wrong one with one. Right ones count ten times.
- focus: 1 if a sentence that answers is shown, less 0.05 for each sentence that is: one more must bring in what answers
  for five questions more of a hundred.

    python bench/thresholds.py [--corpus DIR] [--only FAMILY,...] [--folds N] [--jobs N] [--write] [--quick]
                               [--json FILE]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from batos.gate import thresholds as gate
from batos.memory import thresholds as memory
from report import Goal, report
from thresholds_families_side import FAMILIES, Family, IndexedExample, forget_indexes
from thresholds_sets_side import Example, fold_of
from voice_side import BESIDE

ROOMS: Final = {"gate": gate, "memory": memory}
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "thresholds.md"
BEGIN, END = "<!-- measured: python bench/thresholds.py --write -->\n", "<!-- measured until here -->"
#: The share of the documents that is kept back, as a divisor.
KEPT: Final = 5
#: Examples of a set in a smoke run.
QUICK: Final = 6
#: The examples of the family, which a process that tries a value has of its parent.
_EXAMPLES: list[IndexedExample] = []


def value_of(name: str) -> float:
    """Return the value in the code of a threshold, by its room and its name."""
    room, _, own = name.partition(".")
    found: float = getattr(ROOMS[room], own)
    return found


@contextmanager
def override(name: str, value: float) -> Iterator[None]:
    """Give a threshold another value for a while."""
    room, _, own = name.partition(".")
    before = value_of(name)
    setattr(ROOMS[room], own, value)
    try:
        yield
    finally:
        setattr(ROOMS[room], own, before)


def _try(job: tuple[str, str, float]) -> list[float]:
    family, name, value = job
    with override(name, value):
        return [FAMILIES[family].score(each) for each in _EXAMPLES]


@dataclass(frozen=True, slots=True)
class Fit:
    """The scores of the values of one threshold, one score an example; `shipped` is the value in the code."""

    shipped: float
    scores: Mapping[float, Sequence[float]]
    weights: Sequence[float]

    def mean(self, value: float, places: Sequence[int]) -> float:
        """Return the weighted mean of the scores of some examples."""
        of = self.scores[value]
        return sum(self.weights[at] * of[at] for at in places) / sum(self.weights[at] for at in places)

    def best(self, places: Sequence[int]) -> float:
        """Return the best value for some examples: that in the code of several that are as good."""
        return max(self.scores, key=lambda each: (round(self.mean(each, places), 9), each == self.shipped))

    def across(self, folds: Sequence[int]) -> dict[str, Any]:
        """Return the value that is chosen without each fold, and what it gains in the folds."""
        held: defaultdict[int, list[int]] = defaultdict(list)
        for at, fold in enumerate(folds):
            held[fold].append(at)
        chosen, shipped, gains = [], [], []
        for fold in sorted(held):
            best = self.best([at for at, other in enumerate(folds) if other != fold])
            chosen.append(best)
            shipped.append(self.mean(self.shipped, held[fold]))
            gains.append(self.mean(best, held[fold]) - shipped[-1])
        return {
            "chosen": chosen,
            "shipped_score": round(statistics.fmean(shipped), 4),
            "chosen_score": round(statistics.fmean(shipped) + statistics.fmean(gains), 4),
            "score_spread": round(statistics.stdev(shipped), 4) if len(shipped) > 1 else 0.0,
            "gain": round(statistics.fmean(gains), 4),
            "spread": round(statistics.stdev(gains), 4) if len(gains) > 1 else 0.0,
        }


#: The sorts of folds, and what an example is held out with.
SORTS: Final[Mapping[str, Callable[[Example], str]]] = {
    "by_document": lambda each: f"{each.set} {each.document}",
    "by_kind": lambda each: f"{each.set} {each.kind} {each.language}",
}


def is_better(row: Mapping[str, Any]) -> bool:
    """Test if the chosen values are better than that in the code, beyond the spread, in folds of both sorts."""
    return all(row[by]["gain"] > row[by]["spread"] for by in SORTS)


def weights(examples: Sequence[Example], right: float) -> list[float]:
    """Return weights by which all sets count the same, and right answers of each so many times as wrong ones."""
    counts = Counter((each.set, each.is_right) for each in examples)
    both = {name: (name, True) in counts and (name, False) in counts for name, _ in counts}
    share = {True: right / (right + 1), False: 1 / (right + 1)}
    return [(share[each.is_right] if both[each.set] else 1.0) / counts[each.set, each.is_right] for each in examples]


def is_kept(each: Example) -> bool:
    """Test if an example is kept back."""
    return fold_of(f"kept {each.document}", KEPT) == 0


def fit(name: str, family: Family, corpus: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return the rows of the thresholds of a family, and its figures by set."""
    began = time.perf_counter()
    forget_indexes()
    _EXAMPLES[:] = family.read(corpus, QUICK if given.quick else None)
    jobs = [(name, each, value) for each, tried in family.grid.items() for value in tried if value != value_of(each)]
    shipped = [family.score(each) for each in _EXAMPLES]  # and what is built once
    if given.jobs > 1:
        with multiprocessing.get_context("fork").Pool(given.jobs) as pool:
            found = pool.map(_try, jobs, chunksize=1)
    else:
        found = [_try(job) for job in jobs]
    of = [each.of for each in _EXAMPLES]
    own = [at for at, each in enumerate(of) if not is_kept(each)]
    weighed = weights([of[at] for at in own], family.right)
    rows = {}
    for threshold, tried in family.grid.items():
        scores = {value_of(threshold): [shipped[at] for at in own]}
        scores |= {job[2]: [row[at] for at in own] for job, row in zip(jobs, found, strict=True) if job[1] == threshold}
        one = Fit(value_of(threshold), scores, weighed)
        folds = {by: [fold_of(key(of[at]), given.folds) for at in own] for by, key in SORTS.items()}
        rows[threshold] = {
            "family": name,
            "value": value_of(threshold),
            "tried": list(tried),
            "all": {str(value): round(one.mean(value, range(len(own))), 4) for value in sorted(scores)},
            **{by: one.across(each) for by, each in folds.items()},
        }
        rows[threshold]["better"] = is_better(rows[threshold])
        _tell(threshold, rows[threshold])
    print(f"{name}: {len(of)} examples, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return {"rows": rows, "sets": {each: figures(each, of, shipped) for each in dict.fromkeys(each.set for each in of)}}


def _tell(name: str, row: Mapping[str, Any]) -> None:
    print(
        name, {key: value for key, value in row.items() if key not in ("family", "tried")}, file=sys.stderr, flush=True
    )


def figures(name: str, of: Sequence[Example], scores: Sequence[float]) -> dict[str, Any]:
    """Return the figures of a set, of what was given and of what was kept back."""
    found = {}
    for column, kept in (("given", False), ("kept", True)):
        rows = [(each, score) for each, score in zip(of, scores, strict=True) if each.set == name]
        rows = [pair for pair in rows if is_kept(pair[0]) is kept]
        right, wrong = ([score for each, score in rows if each.is_right is of_right] for of_right in (True, False))
        found[column] = {
            "right": len(right),
            "right_score": round(statistics.fmean(right), 4) if right else None,
            "wrong": len(wrong),
            "wrong_score": round(statistics.fmean(wrong), 4) if wrong else None,
        }
    return found


def write(values: Mapping[str, Any], page: Path = PAGE) -> None:
    """Write the tables between the marks of the page."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    page.write_text(f"{head}{BEGIN}{table(values)}\n{END}{tail}", encoding="utf-8")


def table(values: Mapping[str, Any]) -> str:
    """Return the rows of all thresholds, and the figures of the sets."""
    lines = [
        "| threshold | value | tried | chosen in folds by document | gain | by kind | gain | for |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in values["thresholds"].items():
        tried = f"{row['tried'][0]:g} to {row['tried'][-1]:g}"
        cells = [f"`{name}`", f"{row['value']:g}", tried]
        for by in SORTS:
            across = row[by]
            chosen = ", ".join(f"{each:g}" for each in across["chosen"])
            cells += [chosen, f"{across['gain']:+.4f} ± {across['spread']:.4f}"]
        lines.append(f"| {' | '.join([*cells, row['family']])} |")
    lines += [
        "",
        "| for | set | right answers | score | kept back | score | wrong answers | score | kept back | score |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for family, sets in values["sets"].items():
        for name, each in sets.items():
            cells = [family, name]
            for of in ("right", "wrong"):
                for column in ("given", "kept"):
                    score = each[column][f"{of}_score"]
                    cells += [str(each[column][of]), "" if score is None else f"{score:.3f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def goals_of(sets: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Return the goals of alarms: few on right answers of any set, and many on tasks' answers with a wrong value."""
    goals = []
    for name, columns in sets.get("alarms", {}).items():
        for column, each in columns.items():
            if each["right"]:
                goals.append(
                    Goal(f"alarms on right answers, {name}, {column}", round(1 - each["right_score"], 4), 0.03)
                )
            if each["wrong"] and name == "tasks":
                goals.append(Goal(f"alarms on wrong values, {column}", each["wrong_score"], 0.5, "at_least"))
    return goals


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, fit and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, metavar="DIR", default=Path(os.environ.get("BATOS_CORPUS", BESIDE)))
    parser.add_argument("--only", default=",".join(FAMILIES), metavar="FAMILY,...", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--folds", type=int, default=5, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes that try values")
    parser.add_argument("--write", action="store_true", help=f"write the tables of {PAGE.name} in docs")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    given = parser.parse_args(arguments)
    unknown = set(given.only.split(",")) - FAMILIES.keys()
    if unknown:
        parser.error(f"there is no family {', '.join(sorted(unknown))}: one of {', '.join(FAMILIES)}")
    if given.write and (given.quick or given.only != parser.get_default("only")):
        parser.error("--write writes what a whole run has measured")
    found = {name: fit(name, FAMILIES[name], given.corpus, given) for name in given.only.split(",")}
    rows = {name: row for each in found.values() for name, row in each["rows"].items()}
    values = {
        "thresholds": rows,
        "better": [name for name, row in rows.items() if row["better"]],
        "sets": {name: each["sets"] for name, each in found.items()},
        "folds": given.folds,
    }
    if given.write:
        write(values)
    report(values, goals_of(values["sets"]), given.json)


if __name__ == "__main__":
    main()
