"""The record of a method's uses: each use of its slot is written down once, with totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from persistent.list import PersistentList

from batos.protocol.method_documents import CountName, UseCounts, UseDocument, UseTotals, no_counts, no_use

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
