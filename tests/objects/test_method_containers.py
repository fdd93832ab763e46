"""Which containers an object owns, and how they are copied."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

import BTrees
import pytest
from BTrees.Length import Length
from BTrees.OOBTree import OOBTree
from persistent import Persistent
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.objects.method import DEEPEST, Method, Primitive, copy_owned
from batos.objects.prototype import UvmObject
from batos.protocol.errors import ObjectError

FAMILIES = sorted(name for name in vars(BTrees) if name.endswith("BTree") and len(name) == 7)


class Record(Persistent):
    """A small record, such as other parts of the system keep."""


def sample(letter: str, number: int) -> Any:
    """A key or value that the family letter allows."""
    return {"O": str(number), "F": number / 2, "f": b"%02d" % number, "s": b"%06d" % number}.get(letter, number)


def test_there_are_all_families() -> None:
    """The test below sees every family that BTrees ships."""
    assert len(FAMILIES) == 22


@pytest.mark.parametrize("family", FAMILIES)
def test_trees_of_every_family_are_copied(family: str) -> None:
    """BTree, bucket, tree set and set of each family are copied, with hundreds of entries, and share nothing."""
    module = import_module(f"BTrees.{family}")
    keys = [sample(family[0], number) for number in range(100)]
    values = [sample(family[1], number) for number in range(100)]
    for kind in (module.BTree, module.Bucket):
        tree = kind(dict(zip(keys, values, strict=True)))
        copy = copy_owned(tree, {})
        del copy[keys[0]]
        assert type(copy) is kind
        assert dict(tree.items()) == dict(zip(keys, values, strict=True))
        assert list(copy.keys()) == list(tree.keys())[1:]
    for kind in (module.TreeSet, module.Set):
        tree = kind(keys)
        copy = copy_owned(tree, {})
        copy.remove(keys[0])
        assert type(copy) is kind
        assert list(tree.keys()) == sorted(keys)
        assert list(copy.keys()) == sorted(keys)[1:]


def test_a_large_tree_is_copied_without_recursion() -> None:
    """A BTree of thousands of buckets is copied entry by entry."""
    tree: OOBTree[int, list[int]] = OOBTree({number: [number] for number in range(50_000)})
    copy = copy_owned(tree, {})
    copy[7].append(8)
    assert len(copy) == 50_000
    assert tree[7] == [7]


def test_containers_in_containers_are_copied() -> None:
    """Plain and persistent containers are copied at every depth, keys and tuples included."""
    inner: dict[str, Any] = {"set": {1, 2}, "pair": (1, [2]), "length": Length(3)}
    outer = PersistentList([PersistentMapping({"inner": inner}), inner])
    copy = copy_owned(outer, {})
    copy[1]["set"].add(3)
    copy[1]["pair"][1].append(3)
    copy[1]["length"].change(1)
    assert inner["set"] == {1, 2}
    assert inner["pair"] == (1, [2])
    assert inner["length"]() == 3
    assert (copy[1]["length"](), type(copy[0])) == (4, PersistentMapping)


def test_one_container_stays_one() -> None:
    """A container that stands in two places stands in two places of the copy; a cycle stays a cycle."""
    shared = [1]
    ring: list[Any] = [shared, {"again": shared}]
    ring.append(ring)
    copy = copy_owned(ring, {})
    assert copy[0] is copy[1]["again"]
    assert copy[2] is copy
    assert copy[0] is not shared


@pytest.mark.parametrize(
    "value",
    [UvmObject(), Method("f_", "pass"), Record(), Primitive("log")],
    ids=["object", "method", "record", "primitive"],
)
def test_references_are_kept(value: Any) -> None:
    """Other objects and records are never copied, wherever they stand."""
    copy = copy_owned([value, (value,), {"it": PersistentList([value])}], {})
    assert copy[0] is copy[1][0] is copy[2]["it"][0] is value


@pytest.mark.parametrize(
    "value",
    [None, 1, 2.5, "text", b"bytes", (1, "a"), frozenset({1}), Decimal("1.5"), datetime(2026, 1, 1, tzinfo=UTC)],
)
def test_immutable_values_are_shared(value: Any) -> None:
    """What cannot change is not copied."""
    assert copy_owned(value, {}) is value


@pytest.mark.parametrize("value", [bytearray(b"x"), deque([1]), object()])
def test_an_unknown_mutable_value_is_refused(value: Any) -> None:
    """What may change and is of no known kind is refused rather than shared in silence."""
    with pytest.raises(ObjectError, match="cannot copy"):
        copy_owned([value], {})


def test_a_tuple_that_leads_back_to_itself_stays_one() -> None:
    """The copy of a tuple that holds a list that holds the tuple is such a ring too, as is a tuple in two places."""
    ring: tuple[list[Any], int] = ([], 1)
    ring[0].append(ring)
    copy = copy_owned(ring, {})
    assert copy[0][0] is copy
    assert copy is not ring
    pair = ([1],)
    twice = copy_owned([pair, pair], {})
    assert twice[0] is twice[1]
    assert twice[0] is not pair


@pytest.mark.parametrize(
    "around",
    [
        lambda value: [value],
        lambda value: (value,),
        lambda value: {"in": value},
        lambda value: PersistentList([value]),
        lambda value: PersistentMapping({"in": value}),
        lambda value: OOBTree({"in": value}),
    ],
    ids=["list", "tuple", "dict", "PersistentList", "PersistentMapping", "OOBTree"],
)
def test_containers_have_a_depth(around: Callable[[Any], Any]) -> None:
    """Containers are copied as deep as they may stand; one more is refused in words."""
    value: Any = [1]
    for _ in range(DEEPEST - 2):
        value = around(value)
    assert type(copy_owned([value], {})[0]) is type(value)
    with pytest.raises(ObjectError, match="nested more than"):
        copy_owned([around(value)], {})


@pytest.mark.parametrize("around", [lambda value: [value], lambda value: (value, []), lambda value: {"in": value}])
def test_depth_without_end_is_refused(around: Callable[[Any], Any]) -> None:
    """100,000 containers in one another are refused in words too."""
    value: Any = 1
    for _ in range(100_000):
        value = around(value)
    with pytest.raises(ObjectError, match="nested more than"):
        UvmObject({"deep": value}).clone()
