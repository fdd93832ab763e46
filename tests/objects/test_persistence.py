"""What the database does to objects: ghosts, aborts, dangling references, conflicts, and the covenant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from BTrees.OOBTree import OOBTree
from ZODB.Connection import Connection, TransactionMetaData
from ZODB.DB import DB
from ZODB.POSException import ConflictError, POSKeyError, ReadConflictError

from batos.objects.prototype import UvmObject, become, lookup, own_slots, parents_of, reparent
from batos.protocol.errors import MessageNotUnderstood

Sessions = Callable[[], AbstractContextManager[Connection]]


def committed(connection: Connection) -> None:
    """Commit, and begin the next transaction."""
    connection.transaction_manager.commit()
    connection.transaction_manager.begin()


def test_one_object_is_one_record(session: Sessions, database: DB) -> None:
    """An object with plain containers in its slots is stored as a single record."""
    with session() as connection:
        before = len(database.storage)
        connection.root()["obj"] = UvmObject({"notes": [1, {"a": {2}}], "name": "robin"})
        committed(connection)
        assert len(database.storage) - before == 1


def test_a_ghost_answers_as_before(session: Sessions) -> None:
    """Every reading of a deactivated object loads it; the empty look of its __dict__ misleads nobody."""
    readings: list[Callable[[UvmObject], object]] = [
        lambda obj: obj.x,
        lambda obj: obj.y,
        lambda obj: dict(own_slots(obj)),
        parents_of,
        lambda obj: lookup(obj, "x"),
        lambda obj: lookup(obj, "y"),
        lambda obj: dict(own_slots(obj.clone())),
        lambda obj: parents_of(obj.clone()),
        lambda obj: hasattr(obj, "absent"),
    ]
    with session() as connection:
        parent = UvmObject({"y": 2})
        connection.root()["obj"] = obj = UvmObject({"x": 1}, [parent])
        committed(connection)
        for read in readings:
            expected = read(obj)
            obj._p_deactivate()
            parent._p_deactivate()
            assert obj._p_changed is None
            assert vars(obj) == {}
            assert read(obj) == expected


def test_a_write_to_a_ghost_keeps_its_other_slots(session: Sessions) -> None:
    """Writing, deleting and re-parenting a deactivated object load it first."""
    changes: list[Callable[[UvmObject], object]] = [
        lambda obj: setattr(obj, "z", 3),
        lambda obj: delattr(obj, "z"),
        lambda obj: reparent(obj, parents_of(obj), by="someone", reason="a test", audit=lambda _: None),
        lambda obj: become(obj, UvmObject()),
    ]
    with session() as connection:
        connection.root()["obj"] = obj = UvmObject({"x": 1, "y": 2}, [UvmObject()])
        committed(connection)
        for change in changes:
            obj._p_deactivate()
            change(obj)
            committed(connection)
    with session() as connection:
        assert dict(own_slots(connection.root()["obj"])) == {"x": 1, "y": 2}


def test_the_covenant_saves_what_was_changed_in_place(session: Sessions) -> None:
    """A list in a slot, changed in place, is saved by marking its owner, and by nothing else."""
    with session() as connection:
        connection.root()["marked"] = marked = UvmObject({"notes": []})
        connection.root()["unmarked"] = unmarked = UvmObject({"notes": []})
        committed(connection)
        marked.notes.append(1)
        marked._p_changed = True
        unmarked.notes.append(1)
        committed(connection)
    with session() as connection:
        connection.cacheMinimize()
        assert connection.root()["marked"].notes == [1]
        assert connection.root()["unmarked"].notes == []


def test_an_abort_restores_everything(session: Sessions) -> None:
    """Slots written, deleted, changed in place and marked, and parents moved, are as they were after an abort."""
    with session() as connection:
        first, second = UvmObject({"on": 1}), UvmObject({"on": 2})
        tree: OOBTree[str, int] = OOBTree({"a": 1})
        connection.root()["obj"] = obj = UvmObject({"x": 1, "y": 2, "notes": [1], "tree": tree}, [first])
        committed(connection)
        obj.x = 5
        del obj.y
        obj.z = 3
        obj.notes.append(2)
        obj.tree["b"] = 2
        become(obj, second)
        obj._p_changed = True
        connection.transaction_manager.abort()
        connection.transaction_manager.begin()
        assert (obj.x, obj.y, obj.notes, dict(obj.tree.items()), obj.on) == (1, 2, [1], {"a": 1}, 1)
        assert not hasattr(obj, "z")
        assert parents_of(obj) == (first,)


def test_an_aborted_clone_was_never_there(session: Sessions, database: DB) -> None:
    """A clone made in a transaction that is aborted leaves no record and no identity behind."""
    with session() as connection:
        connection.root()["obj"] = obj = UvmObject({"notes": [1]})
        committed(connection)
        before = len(database.storage)
        connection.root()["clone"] = clone = obj.clone()
        connection.add(clone)
        connection.transaction_manager.abort()
        connection.transaction_manager.begin()
        assert clone._p_oid is None
        assert "clone" not in connection.root()
        assert len(database.storage) == before


@pytest.fixture
def dangling(session: Sessions, database: DB) -> None:
    """`child` has two parents: the record of the first is deleted, the second has every slot."""
    with session() as connection:
        lost = UvmObject({"x": "lost"})
        connection.root()["child"] = UvmObject({"friend": lost, "own": 1}, [lost, UvmObject({"x": 2})])
        committed(connection)
        oid, serial = lost._p_oid, lost._p_serial
    storage, change = database.storage, TransactionMetaData()
    storage.tpc_begin(change)
    storage.deleteObject(oid, serial, change)
    storage.tpc_vote(change)
    storage.tpc_finish(change)
    database.cacheMinimize()


@pytest.mark.usefixtures("dangling")
def test_a_dangling_parent_is_no_missing_slot(session: Sessions) -> None:
    """A parent that is gone raises POSKeyError everywhere: it is not skipped, and not taken for a typo."""
    with session() as connection:
        child = connection.root()["child"]
        assert child.own == 1
        readings: list[Callable[[], object]] = [
            lambda: child.x,
            lambda: hasattr(child, "x"),
            lambda: getattr(child, "x", None),
            lambda: child.friend.x,
            lambda: lookup(child, "absent"),
            lambda: own_slots(child.friend),
            lambda: UvmObject.clone(child.friend),
        ]
        for read in readings:
            with pytest.raises(POSKeyError) as caught:
                read()
            assert not isinstance(caught.value, MessageNotUnderstood | AttributeError)


def test_a_packed_parent_is_no_missing_slot(session: Sessions, database: DB) -> None:
    """A reader whose snapshot was packed away gets POSKeyError for what was collected, never another answer."""
    with session() as writer:
        writer.root()["child"] = UvmObject(parents=[UvmObject({"x": 1})])
        committed(writer)
        with session() as reader:
            child = reader.root()["child"]
            assert parents_of(child)[0]._p_changed is None
            become(writer.root()["child"], UvmObject({"x": 2}))
            committed(writer)
            database.pack()
            with pytest.raises(POSKeyError):
                hasattr(child, "x")


def test_a_conflict_is_no_missing_slot(session: Sessions, database: DB) -> None:
    """A reader whose revision of a parent was packed away gets ReadConflictError through hasattr and lookup."""
    with session() as writer:
        writer.root()["parent"] = parent = UvmObject({"x": 1})
        writer.root()["child"] = UvmObject(parents=[parent, UvmObject({"x": 3})])
        committed(writer)
        with session() as reader:
            child = reader.root()["child"]
            assert parents_of(child)[0]._p_changed is None
            parent.x = 2
            committed(writer)
            database.pack()
            for read in (lambda: hasattr(child, "x"), lambda: child.x, lambda: lookup(child, "absent")):
                with pytest.raises(ReadConflictError):
                    read()


def test_two_writers_of_one_object_conflict(session: Sessions) -> None:
    """The later of two transactions that write one object fails with ConflictError and leaves the first's slots."""
    with session() as first, session() as second:
        first.root()["obj"] = UvmObject({"x": 0})
        committed(first)
        second.transaction_manager.abort()
        second.transaction_manager.begin()
        first.root()["obj"].x = 1
        second.root()["obj"].x = 2
        committed(first)
        with pytest.raises(ConflictError):
            second.transaction_manager.commit()
    with session() as third:
        assert third.root()["obj"].x == 1
