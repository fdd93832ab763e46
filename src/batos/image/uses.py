"""The record of a method's uses: each use of its slot is written down once, with totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from persistent.list import PersistentList

#: Counts over the uses of a revision, separate for the method and for its control (the interpreted intent).
COUNTED: Final = ("calls", "faults", "gate_faults", "bad", "seconds", "tokens", "model_calls")

#: Entries that are one record: a record is written again with each use, so it is short.
PAGE: Final = 16


def no_use() -> dict[str, dict[str, Any]]:
    """Return the totals of no use at all."""
    return {kind: dict.fromkeys(COUNTED, 0) for kind in ("method", "control")}


def write(ledger: Any, entry: Mapping[str, Any]) -> None:
    """Add a use: {mission, revision, outcome, control, seconds, tokens, calls, gate_faults}; nothing is ever changed.

    `revision` is 0 where the intent was interpreted because no revision was active. `ledger` is an IOBTree: the number
    of a page, from 1, to its entries.
    """
    last = int(ledger.maxKey()) if ledger else 0
    if last == 0 or len(ledger[last]) == PAGE:
        last += 1
        ledger[last] = PersistentList()
    ledger[last].append(dict(entry))


def entries(ledger: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every recorded use, oldest first."""
    return (entry for page in ledger.values() for entry in page)


def totals_of(found: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Sum up uses by revision. A lineage's `totals` must equal this sum."""
    totals: dict[int, dict[str, Any]] = {}
    for entry in found:
        totals[entry["revision"]] = add_use(totals.get(entry["revision"]) or no_use(), entry)
    return totals


def add_use(before: Mapping[str, Mapping[str, Any]], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the totals with one more use added."""
    fault, gate = entry["outcome"] == "fault", entry["gate_faults"]
    more = {
        "calls": 1,
        "faults": int(fault),
        "gate_faults": gate,
        "bad": int(fault or gate > 0),
        "seconds": entry["seconds"],
        "tokens": entry["tokens"],
        "model_calls": entry["calls"],
    }
    kind = "control" if entry["control"] else "method"
    return {**before, kind: {name: before[kind][name] + more[name] for name in COUNTED}}
