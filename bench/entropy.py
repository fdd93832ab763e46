"""Rewards of the entropy metric: Hrel and Hsol of right answers beside those that would raise a naive metric.

The file is that of bench/attribution.py. Each question has one passage as evidence, and six answers: the gold answer
alone, its sentence, the question said back, another sentence of the passage, words at random, and the gold sentence
among many such words. `naive_rel` is the cosine of question and answer, `naive_sol` one less the likeness to the
nearest other answer. `ordered` is the share of the questions whose gold answer, and its sentence, are worth more than
each of the bad ones.

`decay` has the share of 400 lines of day values in which a fall of one standard deviation is found within 30 days, the
median of these days, and the share of lines without a fall in which one is found.

    python bench/entropy.py [--data FILE] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from attribution import Item, read
from batos.autotelic import entropy
from batos.autotelic.answer_measures import read_answer
from batos.autotelic.entropy import AnswerFacts, content, likeness
from batos.gate import attribution, checks
from batos.gate.ground import Draft, Ground
from batos.memory.evidence import Evidence, Passage
from batos.memory.segmentation import sentence_spans
from report import Goal, report

#: The names of answers that are worth something, and of those that are not.
GOOD: Final = ("span", "sentence")
BAD: Final = ("echo", "other", "random", "stuffed")
#: Lines of days, and days after the beginning.
LINES, DAYS = 400, 30


@dataclass(frozen=True, slots=True)
class AnswerWorth:
    """The parts of one answer, and what a naive metric says of it."""

    hrel: float
    hsol: float
    naive_rel: float
    naive_sol: float


def answers_of(item: Item, passage: str, words: Sequence[str], chance: random.Random) -> Mapping[str, str]:
    """Return the answers to a question, by name; one that the passage does not allow is left out."""
    spans = list(sentence_spans(passage))
    gold = next((passage[start:end] for start, end in spans if start <= item.start < end), passage)
    others = [passage[start:end] for start, end in spans if passage[start:end] != gold]
    found = {
        "span": item.answer,
        "sentence": gold,
        "echo": f"{item.question.rstrip('? ')}.",
        "random": f"{' '.join(chance.sample(words, min(12, len(words)))).capitalize()}.",
        "stuffed": f"{gold} {item.question.rstrip('? ')}. " + " ".join(chance.sample(words, min(60, len(words)))) + ".",
    }
    return {**found, "other": chance.choice(others)} if others else found


def judge(item: Item, passage: str, answer: str, others: Sequence[str]) -> AnswerWorth:
    """Return the parts of an answer beside answers to other questions."""
    evidence = Evidence((Passage(1, "passage", "0" * 64, 0, passage),))
    found = checks.judge(Draft(answer, Ground(item.question, evidence)))
    citations = attribution.in_files(attribution.citations_of(found.attribution), evidence)
    facts: AnswerFacts = read_answer(
        content(item.question), answer,
        {
            "sentences": attribution.list_sentences(found.attribution), "citations": citations,
            "gate": {"ok": found.verdict.ok, "checked": [], "faults": [], "revised": False},
        },
        (),
    )  # fmt: skip
    said = content(answer)
    near = [likeness(said, content(other)) for other in others]
    return AnswerWorth(
        entropy.relevance(facts) or 0.0, entropy.novelty(facts, near) or 0.0,
        likeness(content(item.question), said), 1 - max(near, default=0.0),
    )  # fmt: skip


def measure(passages: Sequence[str], items: Sequence[Item]) -> dict[str, Any]:
    """Return the mean of each part by the name of the answer, and how often the good ones are worth more."""
    chance = random.Random(7)
    words = sorted({word for text in passages for word in text.split() if word.isalpha()})
    rows: dict[str, list[AnswerWorth]] = {name: [] for name in (*GOOD, *BAD)}
    ordered = []
    for number, item in enumerate(items, 1):
        others = [each.answer for each in chance.sample(list(items), min(8, len(items))) if each is not item]
        told = answers_of(item, passages[item.passage], words, chance)
        found = {name: judge(item, passages[item.passage], answer, others) for name, answer in told.items()}
        for name, each in found.items():
            rows[name].append(each)
        worst = max(each.hrel for name, each in found.items() if name in BAD)
        ordered.append(all(found[name].hrel > worst for name in GOOD))
        print(f"\r{number} of {len(items)} questions", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {
        "answers": {name: _means(each) for name, each in rows.items() if each},
        "ordered": round(fmean(ordered), 4),
    }


def _means(rows: Sequence[AnswerWorth]) -> dict[str, float]:
    fields = AnswerWorth.__dataclass_fields__
    return {name: round(fmean(getattr(each, name) for each in rows), 4) for name in fields}


def measure_decay() -> dict[str, float]:
    """Return how often, and after how many days, a fall is found, and how often where there is none."""

    def line(seed: int, drop: float) -> list[float]:
        chance = random.Random(seed)
        return [chance.gauss(-drop if day >= entropy.BASE else 0.0, 1.0) for day in range(entropy.BASE + DAYS)]

    fell = [_days_until_alarm(line(seed, 1.0)) for seed in range(LINES)]
    flat = [_days_until_alarm(line(seed, 0.0)) for seed in range(LINES)]
    seen = [each for each in fell if each is not None]
    return {
        "found": round(len(seen) / LINES, 4),
        "days": median(seen),
        "false": round(sum(each is not None for each in flat) / LINES, 4),
    }


def _days_until_alarm(values: Sequence[float]) -> int | None:
    lengths = range(entropy.BASE + 1, len(values) + 1)
    return next((days - entropy.BASE for days in lengths if entropy.find_dip(values[:days]) is not None), None)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    corpus = Path(os.environ.get("BATOS_CORPUS", "../shared/corpus"))
    parser.add_argument("--data", type=Path, default=corpus / "quality" / "dev.jsonl")
    parser.add_argument("--quick", action="store_true", help="a few questions")
    parser.add_argument("--json", type=Path, help="also write the document here")
    given = parser.parse_args(argv)
    passages, items = read(given.data, quick=given.quick)
    found = measure(passages, items)
    falls = measure_decay()
    goals = [
        Goal("good answers worth more", found["ordered"], 0.8, "at_least"),
        Goal("worth of an echo", found["answers"]["echo"]["hrel"], 0.05),
        Goal("worth of words at random", found["answers"]["random"]["hrel"], 0.05),
        Goal("falls found", falls["found"], 0.9, "at_least"),
        Goal("falls found where there is none", falls["false"], 0.12),
    ]
    report({"bench": "entropy", "questions": len(items), **found, "decay": falls}, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
