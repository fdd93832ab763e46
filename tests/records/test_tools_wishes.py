"""Wishes for methods: kept until they are made, those of one name for different tools beside each other."""

from __future__ import annotations

import pytest
from BTrees.OOBTree import OOBTree
from ZODB.utils import p64

from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject
from batos.protocol.mission_documents import WishDocument
from batos.records.tools import count_wishes, drop_wish, fold_wishes, list_wishes


def wish(intent: str, *, forged: bool) -> WishDocument:
    """A wish for a method of one slot."""
    return {
        "holder": "tools_obj",
        "selector": "count_",
        "intent": intent,
        "arguments": [],
        "mission": "m-1",
        "forged": forged,
    }


@pytest.fixture
def root() -> Root:
    """As much of a root as wishes need."""
    return {"wishes": OOBTree()}


@pytest.mark.parametrize(("forged", "left"), [(True, ["one", "two"]), (False, ["two"])])
def test_only_forged_tools_of_one_name_stand_beside_each_other(root: Root, forged: bool, left: list[str]) -> None:
    """A declared slot has one intent, the newest; each is dropped alone."""
    for intent in ("one", "two"):
        fold_wishes(root, "m-1", wish(intent, forged=forged))
    assert [each["intent"] for each in list_wishes(root)] == left
    drop_wish(root, [wish("one", forged=forged)])
    assert [each["intent"] for each in list_wishes(root)] == ["two"]


def test_wishes_are_counted_of_all_objects_or_of_one(root: Root) -> None:
    """A wish names its object by the reference."""
    tools, other = UvmObject(), UvmObject()
    tools._p_oid, other._p_oid = p64(42), p64(43)
    fold_wishes(root, "m-1", {**wish("one", forged=False), "holder": "oid:0x2a"})
    assert [count_wishes(root), count_wishes(root, tools), count_wishes(root, other)] == [1, 1, 0]


def test_a_wish_that_an_older_version_kept_is_dropped(root: Root) -> None:
    """Version 0.1.0 kept a forged tool's wish by its slot alone: it would be made again each time and never be done."""
    root[roots.WISHES]["tools_obj count_"] = wish("one", forged=True)
    drop_wish(root, [wish("two", forged=True)])
    (kept,) = list_wishes(root)
    drop_wish(root, [kept])
    assert list_wishes(root) == []
