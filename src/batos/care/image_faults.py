"""The faults of an image, each with the change that mends it, and the search for objects that are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from ZODB.DB import DB
from ZODB.POSException import POSKeyError
from ZODB.serialize import referencesf
from ZODB.utils import get_pickle_metadata, p64, u64, z64

from batos.image import roots
from batos.image.ids import oid_text
from batos.image.past import newest_commit
from batos.image.records import DIGESTS
from batos.image.roots import Root, connection_of
from batos.memory.indexes import kinds
from batos.memory.indexes.postings import Entry, words_beside
from batos.memory.records.memory_segments import NewSegment, add_segment, trees_of
from batos.objects.prototype import UvmObject, own_slots

#: The kind of a fault: a reference to an object that is lost; an entry of a list or an index whose object is not there;
#: an object that its list or index lacks; an entry that leads to another object than it should; an object that nothing
#: refers to; an answer that was never published; a count that is not what is counted; another kind of object than is
#: kept there.
FaultKind: TypeAlias = Literal[
    "dangling reference", "entry without object", "object without entry", "wrong link", "orphan record",
    "unpublished contribution", "wrong count", "wrong kind",
]  # fmt: skip


def discard(tree: object, key: object, root: Root) -> None:
    """Take an entry off a list of the image, if it is there."""
    found: Any = root[tree]  # type: ignore[literal-required]
    found.discard(key) if hasattr(found, "discard") else found.pop(key, None)


def discard_memory(tree: object, key: object, root: Root) -> None:
    """Take an entry off a list of what is remembered, if it is there."""
    trees_of(root)[tree].pop(key, None)


@dataclass(frozen=True, slots=True)
class ImageFault:
    """A fault: where it is, what is wrong, and what its repair does; `mend` is None if only a backup helps."""

    kind: FaultKind
    where: str
    what: str
    repair: str
    mend: Callable[[Root], object] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fault as plain data."""
        can = self.mend is not None
        return {"kind": self.kind, "where": self.where, "what": self.what, "repair": self.repair, "can_repair": can}


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


#: Trees whose entries are objects, and what each entry is.
_TREES: Final = {
    roots.ATTACHMENTS: "the attached file", roots.CONVERSATIONS: "the conversation", roots.DOCUMENTS: "the memory",
    roots.METHODS: "the methods of", roots.APPROVALS: "the approval", roots.GRANTS: "the grant",
    roots.EFFECTS: "the effect", roots.UNDONE: "the undone mission",
}  # fmt: skip
_BACKUP: Final = "Only a backup brings it back: `batos restore`."


def find_dangling(root: Root, graph: ReferenceGraph) -> Iterator[ImageFault]:
    """Yield a fault for each reference to a lost object; where it stands in a list, the entry can go."""
    lost = {oid_of(each) for each in graph.lost_records}
    if not lost:
        return
    told: set[bytes] = set()
    for fault, oid in _entries(root, lost):
        told.add(oid)
        yield fault
    for holder, each in graph.list_broken():
        if oid_of(each) not in told:
            yield _fault_of_holder(root, graph, holder, each)


def _entries(root: Root, lost: set[bytes]) -> Iterator[tuple[ImageFault, bytes]]:
    """Yield the entries of lists whose objects are lost, with the oid of each."""
    for tree, called in _TREES.items():
        for key, value in _items(root, tree):
            if (oid := getattr(value, "_p_oid", None)) in lost:
                what = f"{called} {key} is lost"
                yield _dangling(f"{tree} {key}", what, "take it off the list", partial(discard, tree, key)), oid
    for name, parts in _items(root, roots.MISSIONS):
        for part in parts:
            if part._p_oid in lost:
                what = f"a part of the mission {name} is lost"
                yield _dangling(name, what, "take the mission away", partial(_drop_mission, name)), part._p_oid
    if roots.MEMORIES in root:
        yield from _parts(root, lost)


def _parts(root: Root, lost: set[bytes]) -> Iterator[tuple[ImageFault, bytes]]:
    """Yield the parts of memories, and segments of indexes, that are lost."""
    for number, chunk in trees_of(root)["chunks"].items():
        if chunk._p_oid in lost:
            what = f"part {number} of a memory is lost"
            # The memory that lacks it is then found as one, and forgotten.
            mend = partial(discard_memory, "chunks", number)
            yield _dangling(f"part {number}", what, "forget the memory", mend), chunk._p_oid
    for number, row in trees_of(root)["segments"].items():
        if row[-1]._p_oid in lost:
            what = f"segment {number} of the index of {row[0]} is lost"
            mend = partial(_rebuild_segment, number)
            yield _dangling(f"segment {number}", what, "build it anew", mend), row[-1]._p_oid


def _items(root: Root, tree: str) -> Iterator[tuple[str, Any]]:
    found: Any = root.get(tree)
    yield from found.items() if found is not None else ()


def _dangling(where: str, what: str, repair: str, mend: Callable[[Root], object]) -> ImageFault:
    return ImageFault("dangling reference", where, what, repair, mend)


def _drop_mission(name: str, root: Root) -> None:
    del root[roots.MISSIONS][name]
    for waiting in (roots.UNFOLDED, roots.QUEUED, roots.UNREMEMBERED):
        root[waiting].discard(name)


def _rebuild_segment(number: int, root: Root) -> None:
    """Build a segment of words or links of the parts that it was of; vectors are made anew in the background."""
    kept = trees_of(root)
    kind, about, first, last, *_ = kept["segments"].pop(number)
    if kind == "vectors":
        kept["embedded"].pop(about, None)
        return
    entries = list(entries_between(root, first, last))
    build = kinds.KINDS[kind].build
    if entries and build is not None:
        add_segment(root, NewSegment(kind, build(entries), first, last, about))


def entries_between(root: Root, first: int, last: int) -> Iterator[Entry]:
    """Yield the entries of the indexes for parts of these numbers."""
    kept = trees_of(root)
    for number, chunk in kept["chunks"].items(first, last):
        slots, document = own_slots(chunk), own_slots(own_slots(chunk)["document"])
        is_first = document["chunks"][0] == number
        beside = words_beside(document["source"], document["said_at"])
        yield Entry(number, document["title"], slots["text"], slots["heading"], is_first, beside)


def _fault_of_holder(root: Root, graph: ReferenceGraph, holder: int, lost: int) -> ImageFault:
    """Return the fault of an object that refers to a lost one; a slot that no codex declares can go."""
    where = f"{oid_text(oid_of(holder))} ({graph.kinds[holder]})"
    obj: Any = connection_of(root).get(oid_of(holder))
    slots = [slot for slot, value in _slots(obj).items() if getattr(value, "_p_oid", None) == oid_of(lost)]
    if slots and slots[0] not in (own_slots(obj).get(DIGESTS) or {}):
        what = f"its slot {slots[0]!r} refers to {oid_text(oid_of(lost))}, which is lost"
        return _dangling(where, what, "take the slot away", partial(_drop_slot, oid_of(holder), slots[0]))
    what = f"it refers to {oid_text(oid_of(lost))}, which is lost"
    return ImageFault("dangling reference", where, what, _BACKUP, None)


def _slots(obj: object) -> dict[str, object]:
    return dict(own_slots(obj)) if isinstance(obj, UvmObject) else {}


def _drop_slot(oid: bytes, slot: str, root: Root) -> None:
    obj: Any = connection_of(root).get(oid)
    delattr(obj, slot)
