"""Format 4: the sums of a method's ledger count the uses whose missions were undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.protocol.method_documents import UseCounts, UseTotals, no_counts


def find_lineages(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the lineages behind a key whose sums lack a count, each with its change."""
    kept = root[roots.METHODS]
    for key in kept.keys(after, excludemin=bool(after)):
        lineage = kept[key]
        if any(_lacks_counts(each) for each in (lineage.since, *lineage.totals.values())):
            yield key, partial(_complete, lineage)


def _lacks_counts(totals: UseTotals) -> bool:
    both = totals["method"].keys() & totals["control"].keys()
    return not both.issuperset(no_counts())


def _complete(lineage: Lineage) -> None:
    lineage.since = _with_all_counts(lineage.since)
    for revision, totals in list(lineage.totals.items()):
        lineage.totals[revision] = _with_all_counts(totals)


def _with_all_counts(totals: UseTotals) -> UseTotals:
    return UseTotals(method=_complete_counts(totals["method"]), control=_complete_counts(totals["control"]))


def _complete_counts(counts: UseCounts) -> UseCounts:
    return {**no_counts(), **counts}
