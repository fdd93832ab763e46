"""The references between the records of a storage: to records that are lost, and records that nothing refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from ZODB.DB import DB
from ZODB.POSException import POSKeyError
from ZODB.serialize import referencesf
from ZODB.utils import get_pickle_metadata, p64, u64, z64

from batos.image.views.past import newest_commit


@dataclass(frozen=True, slots=True)
class ReferenceGraph:
    """The records of a storage: which records each one refers to, by oids as whole numbers, and what each is."""

    references: dict[int, tuple[int, ...]]
    kinds: dict[int, str]

    @property
    def lost_records(self) -> frozenset[int]:
        """Return the records that something refers to and that are not there."""
        return frozenset(each for refs in self.references.values() for each in refs if each not in self.references)

    def list_broken(self) -> Iterator[tuple[int, int]]:
        """Yield each record that refers to a lost one, with that one."""
        for holder, refs in self.references.items():
            yield from ((holder, each) for each in refs if each not in self.references)

    def list_unreachable(self, more: Mapping[int, Iterable[int]] = MappingProxyType({})) -> list[int]:
        """Return the records that cannot be reached from the root, also by `more` references."""
        reached, left = {u64(z64)}, [u64(z64)]
        while left:
            each = left.pop()
            for other in (*self.references.get(each, ()), *more.get(each, ())):
                if other not in reached:
                    reached.add(other)
                    left.append(other)
        return sorted(self.references.keys() - reached)


def find_orphans(db: DB, graph: ReferenceGraph) -> list[int]:
    """Return the records that no state of the root ever led to; what was replaced is history, and no orphan."""
    if not graph.list_unreachable():
        return []
    storage: Any = db.storage
    ever: dict[int, set[int]] = {}
    for commit in storage.iterator():
        for record in commit:
            if record.data:
                ever.setdefault(u64(record.oid), set()).update(map(u64, referencesf(record.data)))
    return graph.list_unreachable(ever)


def read_graph(db: DB) -> ReferenceGraph:
    """Read the record of every object as of the newest commit, whatever is committed meanwhile.

    Needs about 200 bytes of memory for each.
    """
    references: dict[int, tuple[int, ...]] = {}
    kinds: dict[int, str] = {}
    for oid, data in _records(db.storage, newest_commit(db)):
        references[u64(oid)] = tuple(map(u64, referencesf(data)))
        kinds[u64(oid)] = get_pickle_metadata(data)[1]
    return ReferenceGraph(references, kinds)


def _records(storage: Any, until: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the record that each object had at a commit, if it was there and not deleted.

    ZODB's own `record_iternext` stops with an error at a record that was deleted, so a file's index is read itself.
    """
    index = getattr(storage, "_index", None)
    if index is None:
        yield from _newest(storage, until).items()
        return
    before = p64(u64(until) + 1)
    for oid in list(index.keys()):
        with suppress(POSKeyError):
            found = storage.loadBefore(oid, before)
            if found is not None:
                yield oid, found[0]


def _newest(storage: Any, until: bytes) -> dict[bytes, bytes]:
    """Return the record of each object at a commit by reading all until then, for a storage that lists no objects."""
    found: dict[bytes, bytes] = {}
    for commit in takewhile(lambda each: each.tid <= until, storage.iterator()):
        for record in commit:
            found.pop(record.oid, None)
            if record.data:
                found[record.oid] = record.data
    return found


def oid_of(number: int) -> bytes:
    """Return the oid of a number."""
    return bytes(p64(number))
