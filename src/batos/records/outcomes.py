"""Uses of methods with totals, and outcomes: what people did with an answer, with the worth of each act."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from persistent.list import PersistentList

from batos.image import roots
from batos.image.roots import Root
from batos.protocol.method_documents import CountName, UseCounts, UseDocument, UseTotals, no_counts, no_use
from batos.protocol.motion_documents import OutcomeAct, OutcomeDocument


class Worth(NamedTuple):
    """The value of an act, from -1 (bad) to 1 (good), and how much it counts beside other acts."""

    value: float
    weight: float


#: The worth of each act. That nobody does anything has none: silence is no consent.
ACTS: Final[Mapping[OutcomeAct, Worth]] = {
    "rated_good": Worth(1.0, 1.0),
    "rated_bad": Worth(-1.0, 1.0),
    "edited": Worth(-1.0, 1.0),
    "undone": Worth(-1.0, 1.0),
    "retracted": Worth(-1.0, 1.0),
    "approved": Worth(1.0, 1.0),
    "refused": Worth(-1.0, 1.0),
    "asked_again": Worth(-0.5, 0.5),
    "corrected": Worth(-0.5, 0.5),
    "cited_later": Worth(0.5, 0.3),
    "went_on": Worth(0.2, 0.2),
    "cancelled": Worth(-0.5, 0.3),
}
#: The acts that are a person's verdict, of which the newest counts.
VERDICTS: Final = frozenset[OutcomeAct]({"rated_good", "rated_bad"})
#: The weight from which on an act is meant as a verdict: others tell what to look at, and decide nothing.
EXPLICIT: Final = 1.0
#: The acts of one mission that are kept; the oldest go.
MOST: Final = 8


class NotedAct(NamedTuple):
    """An act as the image keeps it: when, by whom, and the reason that was given."""

    act: OutcomeAct
    at: str
    by: str
    why: str = ""

    def as_document(self) -> OutcomeDocument:
        """Return it with what it is worth."""
        value, weight = ACTS[self.act]
        told = OutcomeDocument(act=self.act, value=value, weight=weight, at=self.at, by=self.by)
        return {**told, "why": self.why} if self.why else told


def note(root: Root, mission: str, noted: NotedAct) -> None:
    """Note an act on a mission's answer. A verdict takes the place of the same person's verdict before it.

    Another act by a person is noted once.
    """
    instead = VERDICTS if noted.act in VERDICTS else {noted.act}
    before = [each for each in _list_acts(root, mission) if each.by != noted.by or each.act not in instead]
    root[roots.OUTCOMES][mission] = tuple(tuple(each) for each in (*before, noted)[-MOST:])


def list_outcomes(root: Root, mission: str) -> list[OutcomeDocument]:
    """Return what people did with a mission's answer, the oldest act first; an undo that stands comes last."""
    return [each.as_document() for each in (*_list_acts(root, mission), *_by_status(root, mission))]


def mean(outcomes: Iterable[OutcomeDocument]) -> float | None:
    """Return the weighted mean of outcomes, in [-1, 1]; None where there are none.

    >>> from typing import cast
    >>> round(mean([cast("OutcomeDocument", {"value": 1.0, "weight": 1.0}), {"value": -0.5, "weight": 0.5}]), 2)
    0.5
    """
    worth = [(each["value"], each["weight"]) for each in outcomes]
    weight = sum(each for _, each in worth)
    return sum(value * each for value, each in worth) / weight if weight else None


def _list_acts(root: Root, mission: str) -> list[NotedAct]:
    kept = root.get(roots.OUTCOMES)  # an older moment of the image has none
    return [] if kept is None else [_read(each) for each in kept.get(mission, ())]


def _read(kept: tuple[str, ...]) -> NotedAct:
    act, at, by, why = kept
    return NotedAct(cast("OutcomeAct", act), at, by, why)


def _by_status(root: Root, mission: str) -> Iterator[NotedAct]:
    """Yield the act that a mission's status is: an undo that was taken back is none."""
    found = roots.find_record(root, mission)
    if found is None:
        return
    user = str(found.brief.value["user"])
    if found.status.word == "undone":
        yield NotedAct("undone", found.status.at, user)
    elif found.status.word == "cancelled" and _has_spoken(found.status.report):
        yield NotedAct("cancelled", found.status.at, user)


def _has_spoken(report: Mapping[str, object] | None) -> bool:
    """Test if a model had begun to answer in an attempt: a mission that only waited says nothing of an answer."""
    cost = (report or {}).get("cost")
    return isinstance(cost, Mapping) and bool(cost.get("calls"))


#: Counts over the uses of a revision, separate for the method and for its control (the interpreted intent).
COUNTED: Final[tuple[CountName, ...]] = (
    "calls", "faults", "gate_faults", "bad", "seconds", "tokens", "model_calls", "undone",
)  # fmt: skip

#: Outcomes that are no use: the mission of an earlier use was undone, or brought back.
UNDONE: Final = "undone"
REDONE: Final = "redone"

#: Entries that are one record: a record is written again with each use, so it is short.
PAGE: Final = 16


def sum_counts(found: Iterable[UseCounts]) -> UseCounts:
    """Add up counts."""
    total = no_counts()
    for each in found:
        for name in COUNTED:
            total[name] += each.get(name, 0)  # an older version did not count all
    return total


def write(ledger: Any, entry: UseDocument) -> None:
    """Add a use: {mission, revision, outcome, control, seconds, tokens, calls, gate_faults}; nothing is ever changed.

    `revision` is 0 where the intent was interpreted because no revision was active. `ledger` is an IOBTree: the number
    of a page, from 1, to its entries.
    """
    last = int(ledger.maxKey()) if ledger else 0
    if last == 0 or len(ledger[last]) == PAGE:
        last += 1
        ledger[last] = PersistentList()
    ledger[last].append(entry.copy())


def entries(ledger: Any) -> Iterator[UseDocument]:
    """Yield every recorded use, oldest first."""
    return (entry for page in ledger.values() for entry in page)


def totals_of(found: Iterable[UseDocument]) -> dict[int, UseTotals]:
    """Sum up uses by revision. A lineage's `totals` must equal this sum."""
    totals: dict[int, UseTotals] = {}
    for entry in found:
        totals[entry["revision"]] = add_use(totals.get(entry["revision"]) or no_use(), entry)
    return totals


def add_use(before: UseTotals, entry: UseDocument) -> UseTotals:
    """Return the totals with one more use added."""
    fault, gate = entry["outcome"] == "fault", entry["gate_faults"]
    more: UseCounts = {
        "calls": 1,
        "faults": int(fault),
        "gate_faults": gate,
        "bad": int(fault or gate > 0),
        "seconds": entry["seconds"],
        "tokens": entry["tokens"],
        "model_calls": entry["calls"],
        "undone": 0,
    }
    if entry["outcome"] in (UNDONE, REDONE):
        more = {**no_counts(), "undone": 1 if entry["outcome"] == UNDONE else -1}
    if entry["control"]:
        return {**before, "control": sum_counts((before["control"], more))}
    return {**before, "method": sum_counts((before["method"], more))}
