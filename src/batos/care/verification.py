"""Verification and repair: every fault of an image is named, those of missions too; what can be mended is, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.utils import load_current

from batos.agency.records import api_records, effect_records
from batos.care.image_faults import ImageFault, ReferenceGraph, discard, find_dangling, find_orphans, oid_of, read_graph
from batos.care.memory_checks import check_memories
from batos.conversations import conversations
from batos.image import roots
from batos.image.ids import oid_text
from batos.image.image import LivingImage
from batos.image.readable import present_snapshot
from batos.image.records import MissionRecord
from batos.image.roots import Root, connection_of
from batos.objects.prototype import own_slots
from batos.records import methods, outcomes

#: Statuses of missions that somebody has to run.
_OPEN: Final = frozenset({"queued", "running", "waiting", "paused"})
_PUT_ON: Final = "put it on the list"


def check_missions(root: Root) -> Iterator[ImageFault]:
    """Yield the faults of missions, conversations, counts, methods, approvals, effects and tools."""
    counted = roots.count_by_status(root)
    if {word: count for word, count in root[roots.TALLY].items() if count} != counted:
        yield ImageFault("wrong count", "tally", "missions of each status are miscounted", "count anew", _count_anew)
    for name, record in roots.records_of(root):
        yield from _check_mission(root, name, record)
    yield from _check_turns(root)
    yield from _check_lists(root)
    yield from _check_lineages(root)
    yield from _check_effects(root)
    for name, operation, why in api_records.list_unsound(root):
        what, mend = f"the shape of the replies: {why}", partial(api_records.drop_fixture, name, operation)
        yield ImageFault("wrong link", f"{name}.{operation}", what, "forget the shape", mend)


def _count_anew(root: Root) -> None:
    root[roots.TALLY].clear()
    root[roots.TALLY].update(roots.count_by_status(root))


def _check_mission(root: Root, name: str, record: MissionRecord) -> Iterator[ImageFault]:
    slots, status = own_slots(record.thought), record.status
    waits = name in root[roots.UNFOLDED]
    if "contributions" in slots and not status.published and status.word in _OPEN and not waits:
        what = "its answer was committed and never published"
        mend = partial(_insert, roots.UNFOLDED, name)
        yield ImageFault("unpublished contribution", name, what, "publish it at the next start", mend)
    elif status.word in _OPEN and not waits:
        what = f"it is {status.word}, and no process would run it"
        mend = partial(_insert, roots.UNFOLDED, name)
        yield ImageFault("object without entry", name, what, "put it on the list of those that wait", mend)
    if status.word == "queued" and name not in root[roots.QUEUED]:
        mend = partial(_insert, roots.QUEUED, name)
        yield ImageFault("object without entry", name, "it is queued, and no node would take it up", _PUT_ON, mend)
    turn = dict(slots.get("contributions", ())).get("turn")
    if status.word == "done" and turn is not None:
        conversation = root[roots.CONVERSATIONS].get(turn["conversation"])
        if conversation is not None and not conversations.position_of(conversation, name):
            what = f"it is no turn of {turn['conversation']}"
            mend = partial(_add_turn, turn["conversation"], name)
            yield ImageFault("object without entry", name, what, "make it the newest turn", mend)


def _insert(tree: object, name: str, root: Root) -> None:
    root[tree].insert(name)  # type: ignore[literal-required]


def _add_turn(conversation: str, mission: str, root: Root) -> None:
    found = root[roots.CONVERSATIONS][conversation]
    found.turns[conversations.next_position(found)] = mission


def _check_turns(root: Root) -> Iterator[ImageFault]:
    for name, conversation in root[roots.CONVERSATIONS].items():
        for position, mission in list(own_slots(conversation)["turns"].items()):
            record = roots.find_record(root, mission)
            mend = partial(_take_turn, name, position)
            if record is None:
                what = f"turn {position} is {mission}, which is not there"
                yield ImageFault("entry without object", name, what, "take the turn out", mend)
            elif record.brief.value.get("conversation") != name:
                what = f"turn {position} is {mission}, which is no mission of this conversation"
                yield ImageFault("wrong link", name, what, "take the turn out", mend)


def _take_turn(conversation: str, position: int, root: Root) -> None:
    found = root[roots.CONVERSATIONS][conversation]
    if position in found.turns:
        conversations.take_out(found, position)


def _check_lists(root: Root) -> Iterator[ImageFault]:
    """Yield entries of lists whose mission or approval is not there, and approvals that the list lacks."""
    lists: list[tuple[str, Any, Callable[[Any], str]]] = [
        (roots.UNFOLDED, root[roots.UNFOLDED].keys(), str),
        (roots.UNREMEMBERED, root[roots.UNREMEMBERED].keys(), str),
        (roots.UNDONE, root[roots.UNDONE].keys(), str),
        (roots.REPEATS, list(root[roots.REPEATS].keys()), lambda key: str(root[roots.REPEATS][key])),
    ]
    for tree, keys, mission_of in lists:
        for key in list(keys):
            if roots.find_record(root, mission_of(key)) is None:
                what = f"{mission_of(key)} is not there"
                yield ImageFault("entry without object", tree, what, "take it off", partial(discard, tree, key))
    for name in list(root[roots.QUEUED]):
        record = roots.find_record(root, name)
        if record is None or record.status.word != "queued":
            what = f"{name} is {'not there' if record is None else record.status.word}"
            mend = partial(discard, roots.QUEUED, name)
            yield ImageFault("entry without object", roots.QUEUED, what, "take it off", mend)
    approvals = root[roots.APPROVALS]
    for name in list(root[roots.AWAITED]):
        if name not in approvals or approvals[name].word != "asked":
            mend = partial(discard, roots.AWAITED, name)
            what = f"{name} is no question that waits"
            yield ImageFault("entry without object", roots.AWAITED, what, "take it off", mend)
    for name, approval in approvals.items():
        if approval.word == "asked" and name not in root[roots.AWAITED]:
            mend = partial(_insert, roots.AWAITED, name)
            yield ImageFault("object without entry", name, "nobody is asked", _PUT_ON, mend)


def _check_lineages(root: Root) -> Iterator[ImageFault]:
    for key, lineage in root[roots.METHODS].items():
        where = methods.name_of(root, lineage)
        if not lineage.is_sound():
            what = "the slot holds another method than the one that is active there"
            mend = partial(_point_again, key)
            yield ImageFault("wrong link", where, what, "put the active one there", mend)
        if dict(lineage.totals) != outcomes.totals_of(outcomes.entries(lineage.ledger)):
            what = "the sums of its ledger are not those of its entries"
            yield ImageFault("wrong count", where, what, "add up anew", partial(_add_up, key))


def _point_again(key: str, root: Root) -> None:
    lineage = root[roots.METHODS][key]
    value = lineage.revisions[lineage.active] if lineage.active else lineage.intent
    if value is not None:
        setattr(lineage.holder, lineage.selector, value)
    elif lineage.selector in own_slots(lineage.holder):
        delattr(lineage.holder, lineage.selector)


def _add_up(key: str, root: Root) -> None:
    lineage = root[roots.METHODS][key]
    lineage.totals.clear()
    lineage.totals.update(outcomes.totals_of(outcomes.entries(lineage.ledger)))


def _check_effects(root: Root) -> Iterator[ImageFault]:
    effects = root[roots.EFFECTS]
    for tree, entries in ((roots.STAGED, [(name, name) for name in root[roots.STAGED]]),
                          (roots.FIRED, list(root[roots.FIRED].items()))):  # fmt: skip
        for key, name in entries:
            if name not in effects:
                mend = partial(discard, tree, key)
                yield ImageFault("entry without object", tree, f"{name} is not there", "take it off", mend)
    for name, effect in effects.items():
        if effect["state"] in effect_records.WAITING and name not in root[roots.STAGED]:
            mend = partial(_insert, roots.STAGED, name)
            what = f"it is {effect['state']}, and nobody would release it"
            yield ImageFault("object without entry", name, what, _PUT_ON, mend)
        if effect_records.is_unasked(root, effect):
            what, take = "it waits for a yes, and no question about it is open", partial(_take_back, name)
            yield ImageFault("object without entry", name, what, "take it back", take)


def _take_back(effect: str, root: Root) -> None:
    effect_records.become(root, effect_records.find_effect(root, effect), "withdrawn", "")


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
