"""The steps of the image's evolution, one for each format after the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.method_documents import UseCounts, UseTotals, no_counts
from batos.protocol.mission_documents import WishDocument


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


def find_wishes(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the wishes behind a key that are kept under another name than theirs, each with its change."""
    kept = root[roots.WISHES]
    for key in kept.keys(after, excludemin=bool(after)):
        name = _name_of(kept[key])
        if name != key:
            yield key, partial(_rename, root, key, name)


def _name_of(wish: WishDocument) -> str:
    slot = f"{wish['holder']} {wish['selector']}"
    return f"{slot} {wish['intent']}" if wish.get("forged") else slot


def _rename(root: Root, key: str, name: str) -> None:
    kept = root[roots.WISHES]
    wish = kept.pop(key)
    if name not in kept:  # one that came later for the same intent stays
        kept[name] = wish


#: The list of claims among the records of memories, and what its keys of facts begin with.
_CLAIMS, _FAMILIES = "claims", "k\0"


def find_facts(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the facts behind a key of the list of claims that name no family, each with its change."""
    documents = root[roots.DOCUMENTS]
    for key, name, family in _families_of_facts(root, after):
        if name in documents and "family" not in own_slots(documents[name]):
            yield key, partial(_name_family, documents[name], family)


def _families_of_facts(root: Root, after: str) -> Iterator[tuple[str, str, str]]:
    claims = root[roots.MEMORIES].get(_CLAIMS)
    for key, name in () if claims is None else claims.items(max(after, _FAMILIES), excludemin=after > _FAMILIES):
        if not key.startswith(_FAMILIES):
            return
        yield key, name, key.split("\0")[3]


def _name_family(document: UvmObject, family: str) -> None:
    document.family = family


#: Yields what a step has still to change behind a key, in the order of the keys: the key, and the change.
Finder: TypeAlias = Callable[[Root, str], Iterator[tuple[str, Callable[[], None]]]]


class EvolutionStep(NamedTuple):
    """A step: the format that the image has after it, what it does, and what finds the records it has to change.

    A record that has the new form is not found again. So a step that was cut off goes on where it was, and a step that
    runs twice changes nothing.
    """

    number: int
    what: str
    find: Finder


#: In the order of their numbers, without a gap; the last one is `roots.FORMAT`. A step is never changed or removed once
#: a version with it was released.
STEPS: Final = (
    EvolutionStep(2, "wishes for forged tools are kept under slot and intent", find_wishes),
    EvolutionStep(3, "facts name the family of their key", find_facts),
    EvolutionStep(4, "sums of ledgers count undone uses", find_lineages),
)
