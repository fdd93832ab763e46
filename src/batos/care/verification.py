"""Verification and repair: every fault of an image is named; what can be mended is, in commits of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.utils import load_current

from batos.care.image_faults import ImageFault
from batos.care.lost_objects import find_dangling
from batos.care.memory_checks import check_memories
from batos.care.mission_checks import check_missions
from batos.care.references import ReferenceGraph, find_orphans, oid_of, read_graph
from batos.image import roots
from batos.image.ids import oid_text
from batos.image.image import LivingImage
from batos.image.readable import present_snapshot
from batos.image.roots import Root, connection_of

#: The most rounds of a repair: mending one fault may show another behind it.
MOST_ROUNDS: Final = 8


def find_faults(db: DB, *, orphans: bool = True) -> list[ImageFault]:
    """Return all faults of an image. Lists and indexes are only looked at if no object is lost, or of a wrong kind.

    With `orphans` also records that nothing ever referred to; a record that was replaced is no fault, and goes with a
    pack. An image of an older version is checked as it would be after its upgrade.

    Raises: ImageDamaged: a record cannot be read at all.
    """
    graph = read_graph(db)
    with present_snapshot(db) as root:
        found = [*find_dangling(root, graph), *_find_wrong_kinds(root)]
        if not found and all(name in root for name in roots.RECORDS):
            found = [*check_missions(root), *check_memories(root)]
    return [*found, *(_find_orphans(db, graph) if orphans and not graph.lost_records else ())]


def _find_wrong_kinds(root: Root) -> Iterator[ImageFault]:
    for name, found, wanted in roots.find_wrong_kinds(root):
        yield ImageFault("wrong kind", name, f"a {found} stands where a {wanted} belongs", "restore a backup", None)


def _find_orphans(db: DB, graph: ReferenceGraph) -> Iterator[ImageFault]:
    for each in find_orphans(db, graph):
        name = oid_text(oid_of(each))
        what = f"nothing ever referred to this {graph.kinds[each]}"
        yield ImageFault("orphan record", name, what, "delete the record", partial(_delete, oid_of(each)))


def _delete(oid: bytes, root: Root) -> None:
    delete_record(connection_of(root).db(), oid)


async def repair(image: LivingImage) -> tuple[list[ImageFault], list[ImageFault]]:
    """Repair what can be repaired, and return the faults that were mended, and those that are left.

    Raises: ImageDamaged: a record cannot be read at all.
    """
    mended: list[ImageFault] = []
    for _ in range(MOST_ROUNDS):
        found = find_faults(image.db)
        able = [each for each in found if each.mend is not None]
        if not able:
            return mended, found
        records = [each for each in able if each.kind == "orphan record"]
        changes = [each for each in able if each.kind != "orphan record"]
        if changes:
            await image.shared.apply(partial(_mend_all, changes))
        else:
            with image.snapshot() as root:
                _mend_all(records, root)
        mended += changes or records
    return mended, find_faults(image.db)


def _mend_all(faults: list[ImageFault], root: Root) -> None:
    for each in faults:
        if each.mend is not None:
            each.mend(root)


# -- deletion of a record that nothing refers to, in a commit of its own; earlier moments still have it, until a pack


def delete_record(db: DB, oid: bytes) -> None:
    """Delete the current record of an object. The storage has to be this process's alone."""
    storage: Any = db.storage
    _, serial = load_current(storage, oid)
    work = TransactionMetaData(description="an orphan is deleted")
    storage.tpc_begin(work)
    try:
        storage.deleteObject(oid, serial, work)
        storage.tpc_vote(work)
        storage.tpc_finish(work)
    except BaseException:
        storage.tpc_abort(work)
        raise
