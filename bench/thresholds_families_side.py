"""Families of thresholds for bench/thresholds.py: what is read, how it is scored, and the values that are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Final

from batos.gate import checks
from batos.gate.attribution import Attributor
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex
from batos.gate.ground import Draft, Ground
from batos.memory.search.recall import focus
from batos.memory.segmentation import sentence_spans
from thresholds_sets_side import (
    OF_ONE_FACT,
    TODAY,
    Example,
    fold_of,
    hops,
    is_taken,
    long_texts,
    quality,
    tables,
    tasks,
    timelines,
)

#: The cost of a sentence more: 109 characters more had 0.044 fewer answers right (docs/decisions/0027).
SENTENCE_COST: Final = 0.05
#: Clauses that stand in no document of the sets, one of which an answer goes on with.
STRANGE: Final = (
    "as visitors remember",
    "which locals still proudly tell",
    "and tourists gladly photograph wonderful sunsets there",
    "because ancient shepherds quietly believed that purple lanterns frighten hungry wolves",
)

Grid = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Family:
    """Thresholds that one score is for: the values that are tried, and how many times a right answer counts."""

    sets: tuple[Callable[[Path], Iterator[Example]], ...]
    choose: Callable[[Example], bool]
    score: Callable[[IndexedExample], float]
    right: float
    grid: Grid

    def read(self, corpus: Path, most: int | None = None) -> list[IndexedExample]:
        """Return the examples, of each set at most so many: the first ones."""
        chosen = (islice(filter(self.choose, of(corpus)), most) for of in self.sets)
        return [IndexedExample(each) for each in chain.from_iterable(chosen)]


_INDEXES: dict[int, EvidenceIndex] = {}


def forget_indexes() -> None:
    """Forget the indexes of evidence that is no more: they are known by its identity."""
    _INDEXES.clear()


@dataclass
class IndexedExample:
    """An example with what is built of it once."""

    of: Example

    @property
    def index(self) -> EvidenceIndex:
        """Return the index of its evidence."""
        known = id(self.of.evidence)
        if known not in _INDEXES:
            _INDEXES[known] = EvidenceIndex(self.of.evidence)
        return _INDEXES[known]

    @cached_property
    def ground(self) -> Ground:
        """Return what its answer may rest on."""
        return Ground(self.of.question, self.of.evidence, today=TODAY, computed=self.of.computed)

    def holds(self, document: int, start: int, end: int) -> bool:
        """Test if a place is one that answers."""
        return any(number == document and start < last and first < end for number, first, last in self.of.gold)


def carrying(each: IndexedExample) -> float:
    """Score what is cited for an answer."""
    found = Attributor(each.of.question, each.index).attribute(each.of.answer)
    carriers = [carrier for sentence in found.sentences for carrier in sentence.carriers]
    return _score_citations(each, [carrier for carrier in carriers if carrier.document != CONVERSATION])


def citing(each: IndexedExample) -> float:
    """Score what is cited for a part of an answer that goes on with a clause of its own."""
    clause = STRANGE[fold_of(each.of.question, len(STRANGE))]
    found = Attributor(each.of.question, each.index).attribute(f"{each.of.answer.rstrip('.')}, {clause}.")
    return _score_citations(
        each, [part for sentence in found.sentences for part in (*sentence.carriers, *sentence.parts)]
    )


def _score_citations(each: IndexedExample, carriers: Sequence[Citation]) -> float:
    if not each.of.is_right:
        return float(not carriers)
    if not carriers:
        return 0.0
    held = not each.of.gold or any(each.holds(one.document, one.start, one.end) for one in carriers)
    return 1.0 if held else -1.0


def alarms(each: IndexedExample) -> float:
    """Score the gate's verdict on an answer."""
    return float(checks.judge(Draft(each.of.answer, each.ground)).verdict.ok == each.of.is_right)


def in_focus(each: IndexedExample) -> float:
    """Score what is shown of the evidence for a question."""
    shown = focus(each.of.evidence.passages, each.of.question)
    answered = any(each.holds(one.number, one.start, one.start + len(one.text)) for one in shown)
    return answered - SENTENCE_COST * sum(len(sentence_spans(one.text)) for one in shown)


def has_one_fact(each: Example) -> bool:
    """Test if an answer says one thing, which a sentence carries."""
    return bool(each.gold) or each.kind in OF_ONE_FACT


def is_statement(each: Example) -> bool:
    """Test if an answer is a whole sentence."""
    return each.kind.endswith("stated")


def is_in_share(each: Example) -> bool:
    """Test if an example of a large set is in the share that is taken; all of a small one are."""
    return not each.gold or is_taken(each.question)


def is_question(each: Example) -> bool:
    """Test if a question was not seen before: each has several answers."""
    return each.is_right and not each.kind.endswith("alone") and (each.set != "quality" or is_taken(each.question))


FAMILIES: Final[Mapping[str, Family]] = {
    "carrying": Family(
        (quality, hops, tasks, tables),
        has_one_fact,
        carrying,
        3.0,
        {
            "gate.NEW_SHARE": (0.5, 0.6, 0.7, 0.8, 0.9),
            "gate.QUESTION_SHARE": (0, 0.1, 0.15, 0.2, 0.25),
            "gate.RELATIVE_SHARE": (0.25, 0.35, 0.45, 0.55, 0.65),
            "gate.COMPLETE": (0.1, 0.2, 0.3, 0.4, 0.6),
            "gate.NEW_WEIGHT": (1, 1.5, 2, 3, 4),
            "gate.DOCUMENT_PART": (0, 0.05, 0.1, 0.25, 0.5),
            "gate.LENGTH_COST": (0, 0.025, 0.05, 0.1, 0.2),
            "gate.PAIR_SHARE": (0.15, 0.25, 0.35),
            "gate.PAIR_WORDS": (2, 3, 4, 6),
            "gate.LEAD": (0, 0.2, 0.4, 0.6, 0.8),
            "gate.SCALE": (2, 3, 5, 8, 12),
            "gate.CLAUSE_DISTANCE": (0, 1, 2, 4),
            "gate.LEAST_SENTENCES": (1, 30, 100, 300),
            "gate.PRONOUN_PART": (0, 0.25, 0.5, 0.75, 1),
            "gate.HIRAGANA_PART": (0.1, 0.25, 0.5, 1),
            "gate.COPIED_WORDS": (5, 6, 8, 12),
        },
    ),
    "citing": Family(
        (quality, hops),
        is_statement,
        citing,
        3.0,
        {
            "gate.PART_SHARE": (0.3, 0.4, 0.5, 0.6, 0.7),
            "gate.CLAUSE_WORDS": (2, 3, 4, 5),
            "gate.CLAUSE_SHARE": (0.2, 0.3, 0.35, 0.4, 0.5),
        },
    ),
    "alarms": Family(
        (quality, hops, tasks, tables),
        is_in_share,
        alarms,
        10.0,
        {
            "gate.KNOWN_SHARE": (0.2, 0.35, 0.5, 0.65),
            "gate.KNOWN_WORDS": (2, 3, 4, 5),
            "gate.SHORT_ANSWER": (1, 2, 3),
            "gate.STRAY_SHARE": (0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8),
            "gate.STRAY_BESIDE": (0, 1, 2),
            "gate.STRAY_WORDS": (3, 6, 9, 15),
            "gate.STRAY_QUESTIONS": (1, 2, 3, 5),
        },
    ),
    "focus": Family(
        (quality, hops, long_texts, timelines),
        is_question,
        in_focus,
        1.0,
        {
            "memory.FOCUS_USUAL": (1, 2, 3, 4),
            "memory.FOCUS_MOST": (2, 3, 4, 6),
            "memory.FOCUS_FAINT": (0, 0.15, 0.3, 0.45, 0.6),
            "memory.FOCUS_COVERED": (0, 0.025, 0.05, 0.1, 0.2),
            "memory.FOCUS_ALIKE": (0.7, 0.8, 0.9, 0.95, 1.0),
            "memory.FOCUS_ALIKE_FOUND": (0.6, 0.7, 0.8, 0.9, 1.0),
            "memory.FOCUS_PASSAGE_POWER": (0, 0.5, 0.75, 1, 1.5),
            "memory.FOCUS_SHORT_PART": (0, 0.25, 0.5, 1),
            "memory.FOCUS_SHORT_LETTERS": (2, 3, 4),
            "memory.FOCUS_LENGTH_COST": (0, 0.025, 0.05, 0.1, 0.2),
        },
    ),
}
