"""Brings an image that an older version wrote into the present form, step by step, and shows one so without writing.

The first commit gives the image its new format number, so that no older version opens it any more, with a note of how
far the steps have come. Each step then commits in batches. A process that dies in between leaves the note behind, and
the next one goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count, islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import structlog

from batos.image import roots
from batos.image.ids import iso, utc_now
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import OldFormat
from batos.protocol.method_documents import UseCounts, UseTotals, no_counts
from batos.protocol.mission_documents import WishDocument
from batos.version import __version__


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


T = TypeVar("T")

_log = structlog.get_logger("batos.image")

#: The keys in `genesis`: the upgrade under way, and all that were finished.
UNDER_WAY: Final = "upgrade"
UPGRADES: Final = "upgrades"
#: Most records that one commit changes, and the number of commits after which a long step is told.
BATCH: Final = 500
_TOLD: Final = 20


def tell_log(what: str) -> None:
    """Write a step of an upgrade into the log."""
    _log.warning("image.upgrade", what=what)


async def _without_backup(number: int) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Upgrading:
    """Says how an older image is upgraded: what is done before, and whom each step is told to.

    `before` is given the format, makes a backup and returns its folder; "" means that there is none.
    """

    before: Callable[[int], Awaitable[str]] = _without_backup
    tell: Callable[[str], None] = tell_log
    clock: Callable[[], datetime] = utc_now
    batch: int = BATCH


def format_of(root: Root) -> int:
    """Return the format up to which all steps were made; that of this version if there is nothing yet."""
    if roots.GENESIS not in root:
        return roots.FORMAT
    kept = root[roots.GENESIS]
    under_way = kept.get(UNDER_WAY)
    return int(kept.get("format", roots.FIRST_FORMAT) if under_way is None else under_way["done"])


def pending(root: Root) -> tuple[EvolutionStep, ...]:
    """Return the steps that an image lacks."""
    number = format_of(root)
    return tuple(step for step in STEPS if step.number > number)


def show_in_present_form(root: Root) -> None:
    """Make all steps that an image lacks in a snapshot, whose changes are thrown away."""
    if roots.GENESIS not in root:
        return
    lacking = pending(root)
    if lacking or any(name not in root for name in roots.RECORDS):
        roots.prepare(root)
        for step in lacking:
            for _, change in list(step.find(root, "")):
                change()
        root[roots.GENESIS]["format"] = roots.FORMAT
        root[roots.GENESIS].pop(UNDER_WAY, None)


class Changes(Protocol):
    """Makes a change of the image's root in a commit, as `image.writer.Writer` does."""

    async def apply(self, change: Callable[[Root], T]) -> T:
        """Make a change; it is durable when this returns."""


async def evolve(root: Root, writer: Changes, upgrading: Upgrading | None) -> None:
    """Make all steps that an image lacks; `root` is a snapshot of it. A step that is made is durable.

    Raises: OldFormat: there are some, and nobody says how to upgrade.
    """
    before, lacking = format_of(root), pending(root)
    is_under_way = UNDER_WAY in root.get(roots.GENESIS, {})
    if not lacking and not is_under_way:
        return
    if upgrading is None:
        raise OldFormat(before, roots.FORMAT)
    if not is_under_way:
        backup = await upgrading.before(before)
        upgrading.tell(f"format {before} becomes {roots.FORMAT}; backup: {backup or 'none'}")
        await writer.apply(partial(_begin, before=before, backup=backup, at=iso(upgrading.clock())))
    for step in lacking:
        changed = await _make(step, writer, upgrading)
        upgrading.tell(f"format {step.number}: {step.what} ({changed} changed)")
    await writer.apply(_finish)


def _begin(root: Root, *, before: int, backup: str, at: str) -> None:
    roots.prepare(root)
    told = {"from": before, "done": before, "backup": backup, "at": at}
    root[roots.GENESIS].update({"format": roots.FORMAT, "version": __version__, UNDER_WAY: told})


async def _make(step: EvolutionStep, writer: Changes, upgrading: Upgrading) -> int:
    changed, after = 0, ""
    for number in count(1):
        made, after = await writer.apply(partial(_make_batch, step=step, after=after, most=upgrading.batch))
        changed += made
        if made < upgrading.batch:
            break
        if number % _TOLD == 0:
            upgrading.tell(f"format {step.number}: {changed} changed so far")
    return changed


def _make_batch(root: Root, *, step: EvolutionStep, after: str, most: int) -> tuple[int, str]:
    """Change the next records of a step; return how many they were, and the key of the last."""
    found = list(islice(step.find(root, after), most))
    for _, change in found:
        change()
    if len(found) < most:
        kept = root[roots.GENESIS]
        kept[UNDER_WAY] = {**kept[UNDER_WAY], "done": step.number}
    return len(found), found[-1][0] if found else after


def _finish(root: Root) -> None:
    kept: MutableMapping[str, Any] = root[roots.GENESIS]
    told: Mapping[str, object] = kept.pop(UNDER_WAY)
    made = {"from": told["from"], "to": roots.FORMAT, "at": told["at"], "version": __version__}
    kept[UPGRADES] = (*kept.get(UPGRADES, ()), {**made, "backup": told["backup"]})
    kept["format"] = roots.FORMAT
