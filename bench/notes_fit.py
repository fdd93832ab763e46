"""Fits how near a note must be to a question to be shown, over questions to a folder, by cross-validation over notes.

The data is that of bench/notes.py, of which the part `fit` is taken. A question is right if its note is near enough; it
is shown something for nothing if another note is near enough when its own is left out. `gain` is the share of the first
less that of the second. In turn each of --folds shares of the notes is kept back: the threshold is the best one for the
questions to the others, and `gain_kept_back` is that for the questions to the notes kept back.

    python bench/notes_fit.py [--data DIR] [--embedder FILE|NAME | --words] [--folds N] [--quick]
                              [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from batos.memory.search.chunk_search import RecallQuery, VectorQuery, coverage
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import EVIDENCE, GIVEN
from batos.objects.prototype import own_slots
from batos.uvm import UVM
from notes import DATA, Notes
from report import Goal, report
from tasks_arms_side import remember_folder
from voice_side import daemon, uvm_over

#: Parts that a question is compared with: as many as a mission is shown.
MOST: Final = 8
#: The worth of a threshold at least on notes that it was not fitted to.
LEAST_GAIN: Final = 0.7
#: Questions of a quick run.
QUICK: Final = 12
STEPS: Final = [each / 200 for each in range(20, 160)]


@dataclass(frozen=True, slots=True)
class NoteDistance:
    """A question with its note: how near that is, and how near the nearest other one."""

    note: str
    own: float
    other: float


async def measure(uvm: UVM, notes: Notes, *, vectors: bool) -> list[NoteDistance]:
    """Return how near the notes are to each question; its own is 0 if it is not among the first."""
    found = []
    embedder = await uvm.embedder_finder.find() if vectors else None
    for each in notes.questions:
        query = RecallQuery(each["question"])
        if embedder is not None:
            (vector,) = await embedder.vectors([each["question"]])
            query = RecallQuery(each["question"], VectorQuery(embedder.digest, vector))
        near = _near(uvm, query)
        others = [value for note, value in near if note != each["note"]]
        own = [value for note, value in near[:MOST] if note == each["note"]]
        found.append(NoteDistance(each["note"] or "", max(own, default=0.0), max(others[:MOST], default=0.0)))
    return found


def _near(uvm: UVM, query: RecallQuery) -> list[tuple[str, float]]:
    """Return the sources of the first parts, and how near each is to the query before it is compared with a least."""
    reach = MemoryReach(uvm.settings.asker, kinds=GIVEN, evidence=EVIDENCE)
    with uvm.image.snapshot() as root:
        found = uvm.readings.recollection.search.recall(root, query, reach, 2 * MOST)
        near = []
        for each in found.best(2 * MOST):
            covered = coverage(found.said, each.chunk, each.link.sentence if each.link else "")
            value = covered if each.cosine is None else (covered + each.cosine) / 2
            near.append((own_slots(own_slots(each.chunk)["document"])["source"], value))
    return near


def shares(measured: Sequence[NoteDistance], least: float) -> tuple[float, float]:
    """Return the shares of questions whose note is near enough, and for which another one is."""
    right = statistics.fmean(each.own >= least for each in measured if each.note)
    return right, statistics.fmean(each.other >= least for each in measured)


def gain(measured: Sequence[NoteDistance], least: float) -> float:
    """Return the gain of a threshold."""
    right, nothing = shares(measured, least)
    return right - nothing


def best(measured: Sequence[NoteDistance]) -> float:
    """Return the threshold with the best gain; the middle of several."""
    gains = [gain(measured, each) for each in STEPS]
    return statistics.median(each for each, found in zip(STEPS, gains, strict=True) if found == max(gains))


def cross_validate(measured: Sequence[NoteDistance], folds: int) -> dict[str, Any]:
    """Return the threshold for all questions, and what those of the folds gain on what was kept back from them."""
    notes = sorted({each.note for each in measured if each.note})
    nothing = [each for each in measured if not each.note]
    chosen, gained = [], []
    for fold in range(folds):
        kept, back = set(notes[fold::folds]), nothing[fold::folds]
        rest = [each for each in measured if each.note not in kept and each not in back]
        chosen.append(best(rest))
        gained.append(gain([each for each in measured if each not in rest], chosen[-1]))
    least = best(measured)
    right, shown = shares(measured, least)
    return {
        "least": least,
        "spread": [min(chosen), max(chosen)],
        "right": round(right, 3),
        "shown_for_nothing": round(shown, 3),
        "gain_kept_back": round(statistics.fmean(gained), 3),
    }


async def fit(given: argparse.Namespace) -> dict[str, Any]:
    """Fit by words, and by vectors where there is an embedder."""
    notes = Notes.read(given.data, "fit", QUICK if given.quick else 0)
    found: dict[str, Any] = {}
    for name, models in {
        "by_words": None,
        **({} if given.words or given.quick else {"by_vectors": [given.embedder]}),
    }.items():
        async with daemon(argparse.Namespace(url=None, gguf=models)) as url, uvm_over(url) as uvm:
            await remember_folder(uvm, notes.documents, vectors=models is not None)
            measured = await measure(uvm, notes, vectors=models is not None)
        found[name] = cross_validate(measured, given.folds)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, fit and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", default=DATA)
    parser.add_argument("--embedder", metavar="FILE|NAME", default="all-minilm", help="the real model of the vectors")
    parser.add_argument("--words", action="store_true", help="by words alone: no vectors")
    parser.add_argument("--folds", type=int, default=5, metavar="N")
    parser.add_argument("--quick", action="store_true", help="a few by words alone: shape, not figures")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    given = parser.parse_args(arguments)
    found = asyncio.run(fit(given))
    goals = [
        Goal(f"gain_kept_back {name}", each["gain_kept_back"], LEAST_GAIN, "at_least") for name, each in found.items()
    ]
    report(found, goals, given.json)


if __name__ == "__main__":
    main()
