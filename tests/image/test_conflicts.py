"""A file storage that remembers what it wrote: whoever writes on an older state is told, and trees are merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from transaction import TransactionManager
from ZODB.DB import DB
from ZODB.POSException import ConflictError

from batos.image.filestorage import SoundFileStorage


class Hand:
    """A connection of its own, which sees what was there when it last began."""

    def __init__(self, db: DB) -> None:
        self.manager = TransactionManager(explicit=True)
        self.manager.begin()
        self.root: Any = db.open(self.manager).root()

    def commit(self) -> None:
        """Commit, and begin anew; a conflict aborts."""
        try:
            self.manager.commit()
        except ConflictError:
            self.manager.abort()
            raise
        finally:
            self.manager.begin()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[DB]:
    """A database with a mapping `one` and a tree `tree`."""
    made = DB(SoundFileStorage(str(tmp_path / "image.fs")))
    hand = Hand(made)
    hand.root["one"], hand.root["tree"] = PersistentMapping(number=0), OOBTree(dict.fromkeys(range(5), 0))
    hand.commit()
    yield made
    made.close()


def conflicts(db: DB) -> bool:
    """Let two hands write one object from the same state; tell if the second was refused."""
    first, second = Hand(db), Hand(db)
    for hand in (first, second):
        hand.root["one"]["number"] += 1
    first.commit()
    with pytest.raises(ConflictError):
        second.commit()
    second.root["one"]["number"] += 1
    second.commit()
    return bool(Hand(db).root["one"]["number"] == first.root["one"]["number"] + 1)


def test_two_that_write_one_object_conflict(db: DB) -> None:
    """Again and again, and in a packed file too, where other records stand in the places of those before."""
    for _ in range(3):
        assert conflicts(db)
    db.pack()
    for _ in range(3):
        assert conflicts(db)


def test_two_that_write_one_tree_are_merged(db: DB) -> None:
    """Different keys of one leaf: the earlier states that the merge needs are read from the file."""
    for number in range(10, 20, 2):
        first, second = Hand(db), Hand(db)
        first.root["tree"][number], second.root["tree"][number + 1] = "first", "second"
        first.commit()
        second.commit()
        tree = Hand(db).root["tree"]
        assert (tree[number], tree[number + 1], len(tree)) == ("first", "second", number - 3)
    db.pack()
    assert list(Hand(db).root["tree"]) == [*range(5), *range(10, 20)]
