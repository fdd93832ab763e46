"""What an object answers, what it refuses, and who may change its parents."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from persistent.mapping import PersistentMapping
from transaction.interfaces import NoTransaction
from ZODB.Connection import Connection

from batos.objects import prototype
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import (
    FoundSlot,
    Reparenting,
    UvmObject,
    become,
    delegation,
    label,
    lookup,
    own_slots,
    parents_of,
    reference,
    reparent,
)
from batos.protocol.errors import MessageNotUnderstood, ObjectError

Sessions = Callable[[], AbstractContextManager[Connection]]

NEVER_SLOTS = [
    "__len__",
    "__deepcopy__",
    "__getnewargs__",
    "__provides__",
    "__array_interface__",
    "__wrapped__",
    "_p_jar_of_mine",
    "_v_cache",
    "_parents",
    "_slots",
    "parent*",
    "_doesNotUnderstand_",
    "_is_coroutine",
    "_is_coroutine_marker",
    "clone",
]


def unheard(_: Reparenting) -> None:
    """An audit that lets everything pass."""


def test_an_own_slot_answers_first() -> None:
    """A slot of the object hides one of the same name in a parent."""
    parent = UvmObject({"tone": "grave", "role": "guide"})
    child = UvmObject({"tone": "glad"}, [parent])
    assert (child.tone, child.role) == ("glad", "guide")


def test_writing_never_touches_the_parent() -> None:
    """Writing a slot that was read by delegation makes an own one; deleting it shows the parent's again."""
    parent = UvmObject({"tone": "grave"})
    child = UvmObject(parents=[parent])
    child.tone = "glad"
    assert (child.tone, parent.tone) == ("glad", "grave")
    del child.tone
    assert child.tone == "grave"
    assert not own_slots(child)


def test_an_absent_name_raises_at_once() -> None:
    """Reading a name that nobody has raises MessageNotUnderstood, which hasattr and getattr take as usual."""
    obj = UvmObject({"name": "robin"}, [UvmObject()])
    with pytest.raises(MessageNotUnderstood) as caught:
        obj.typo  # noqa: B018 - the reading is the point
    assert caught.value.receiver == "robin (oid:new)"
    assert caught.value.selector == "typo"
    assert not hasattr(obj, "typo")
    assert getattr(obj, "typo", 5) == 5


def test_deleting_an_absent_slot_is_refused() -> None:
    """Only an own slot can be deleted, never one of a parent."""
    child = UvmObject(parents=[UvmObject({"tone": "grave"})])
    with pytest.raises(MessageNotUnderstood):
        del child.tone


@pytest.mark.parametrize("name", NEVER_SLOTS)
def test_reserved_names_are_no_slots(name: str) -> None:
    """A name of Python, the database or the kernel is refused as a slot, however it is written."""
    obj = UvmObject()
    with pytest.raises(ObjectError):
        UvmObject({name: 1})
    with pytest.raises(ObjectError):
        obj.clone({name: 1})
    with pytest.raises(ObjectError):
        setattr(obj, name, 1)
    with pytest.raises(ObjectError):
        delattr(obj, name)
    assert not own_slots(obj)
    assert lookup(obj, name) is None


@pytest.mark.parametrize("name", [1, None, b"name", ("a",)])
def test_what_is_no_text_is_no_slot(name: Any) -> None:
    """A slot is named by a text; anything else is refused in words."""
    for make in (UvmObject, UvmObject().clone):
        with pytest.raises(ObjectError, match="name is text"):
            make({name: 2})


@pytest.mark.parametrize("name", [name for name in NEVER_SLOTS if not hasattr(UvmObject(), name)])
def test_reserved_names_are_never_delegated(name: str) -> None:
    """A reserved name raises a plain AttributeError at once: no parent is asked."""
    child = UvmObject(parents=[UvmObject()])
    with pytest.raises(AttributeError) as caught:
        getattr(child, name)
    assert not isinstance(caught.value, MessageNotUnderstood)


def test_every_attribute_of_the_class_is_reserved() -> None:
    """Whatever Python or Persistent put on the class can be no slot, so that no slot hides it or is hidden by it."""
    assert [name for name in dir(UvmObject) if not prototype.is_reserved(name)] == []


def test_an_unfinished_object_does_not_recurse() -> None:
    """An object without a state yet (made by __new__) raises instead of looking for its parents for ever."""
    blank = UvmObject.__new__(UvmObject)
    with pytest.raises(AttributeError):
        blank.anything  # noqa: B018 - the reading is the point


def test_probing_by_libraries_finds_nothing() -> None:
    """What asyncio asks of any value is answered without delegation."""
    assert not asyncio.iscoroutinefunction(UvmObject(parents=[UvmObject()]))


@pytest.mark.parametrize("value", [len, print, lambda: None, "".join, dict])
def test_a_function_is_no_slot_value(value: Any) -> None:
    """Kernel functions are named by Primitives; a function or class itself is refused."""
    with pytest.raises(ObjectError, match="Primitive"):
        UvmObject({"log_": value})


def test_there_are_no_classes_to_subclass() -> None:
    """A class that would derive from UvmObject is refused when it is defined."""
    with pytest.raises(ObjectError, match="clone"):
        type("Robin", (UvmObject,), {})


def test_a_parent_is_an_object() -> None:
    """What is no UvmObject can be no parent."""
    stranger: Any = PersistentMapping()
    with pytest.raises(ObjectError, match="PersistentMapping"):
        UvmObject(parents=[stranger])


def test_delegation_goes_left_to_right_and_depth_first() -> None:
    """The left parent's ancestors are asked before the right parent; the depth counts parents."""
    top = UvmObject({"x": "top"})
    left, right = UvmObject(parents=[top]), UvmObject({"x": "right", "y": "right"})
    child = UvmObject(parents=[left, right])
    assert lookup(child, "x") == FoundSlot(top, "top", 2)
    assert lookup(child, "y") == FoundSlot(right, "right", 1)
    assert lookup(right, "y") == FoundSlot(right, "right", 0)
    assert list(delegation(child)) == [child, left, top, right]


def test_a_deep_chain_is_walked_without_recursion() -> None:
    """Ten thousand parents deep, a slot is found and an absent one is missed."""
    top = obj = UvmObject({"x": 1})
    for _ in range(10_000):
        obj = UvmObject(parents=[obj])
    assert lookup(obj, "x") == FoundSlot(top, 1, 10_000)
    assert lookup(obj, "y") is None


def test_own_slots_is_a_read_only_look() -> None:
    """The view cannot be written, holds no parents, and stays as it was."""
    obj = UvmObject({"x": 1}, [UvmObject()])
    seen = own_slots(obj)
    obj.y = 2
    assert dict(seen) == {"x": 1}
    with pytest.raises(TypeError):
        seen["x"] = 3  # type: ignore[index]  # refused by the type as well


def test_a_clone_of_data_has_the_same_parents() -> None:
    """An object without behaviour gives its clone its own parents and copies of its slots."""
    parent = UvmObject()
    original = UvmObject({"queries": ["why"]}, [parent])
    clone = original.clone({"tone": "glad"})
    clone.queries.append("how")
    assert parents_of(clone) == (parent,)
    assert (original.queries, clone.queries, clone.tone) == (["why"], ["why", "how"], "glad")


@pytest.mark.parametrize("behaviour", [Method("f_", "pass"), Intent("be kind"), Primitive("log")])
def test_behaviour_is_shared_through_a_parent(behaviour: Any) -> None:
    """An object that holds behaviour is the parent of its clone, and a redefinition reaches the clone."""
    original = UvmObject({"f_": behaviour, "notes": []}, [UvmObject()])
    clone = original.clone()
    assert parents_of(clone) == (original,)
    assert set(own_slots(clone)) == {"notes"}
    assert clone.f_ is behaviour
    original.f_ = again = Method("f_", "return 2", revision=2)
    assert clone.f_ is again


def test_slots_given_to_clone_are_taken_as_they_are() -> None:
    """What is put over a slot replaces it uncopied, even behaviour."""
    original = UvmObject({"f_": Intent("be kind"), "notes": [1]})
    mine = Intent("be brief")
    clone = original.clone({"f_": mine, "notes": None})
    assert (clone.f_, clone.notes) == (mine, None)
    assert original.notes == [1]


def test_every_way_of_copying_is_a_clone() -> None:
    """copy.copy and copy.deepcopy share no container and leave the parent graph alone."""
    parent, friend = UvmObject(), UvmObject()
    original = UvmObject({"notes": [[1]], "friend": friend}, [parent])
    for made in (copy.copy(original), copy.deepcopy(original), copy.deepcopy([original])[0]):
        made.notes[0].append(2)
        assert original.notes == [[1]]
        assert made.friend is friend
        assert parents_of(made) == (parent,)


def test_a_reference_to_itself_becomes_one_to_the_clone() -> None:
    """An object that holds itself has a clone that holds the clone."""
    original = UvmObject()
    original.me = original
    original.all = [original]
    clone = original.clone()
    assert clone.me is clone
    assert clone.all == [clone]


def test_reparent_tells_the_audit_first() -> None:
    """The audit gets what was, what will be, who and why while the object still has its old parents."""
    old, new = UvmObject(), UvmObject({"x": 1})
    obj = UvmObject(parents=[old])
    told: list[Reparenting] = []

    def audit(change: Reparenting) -> None:
        assert parents_of(obj) == (old,)
        told.append(change)

    reparent(obj, [new, old], by="architect", reason="a trait is shared", audit=audit)
    assert parents_of(obj) == (new, old)
    [change] = told
    assert (change.object, change.before, change.after) == (obj, (old,), (new, old))
    assert (change.by, change.reason) == ("architect", "a trait is shared")
    with pytest.raises(AttributeError):
        change.by = "nobody"  # type: ignore[misc]  # refused by the type as well


def test_a_refusing_audit_leaves_everything() -> None:
    """If the audit raises, its error comes through and the parents are as they were."""
    old = UvmObject()
    obj = UvmObject(parents=[old])

    def refuse(change: Reparenting) -> None:
        raise PermissionError(change.reason)

    with pytest.raises(PermissionError, match="because"):
        reparent(obj, [], by="someone", reason="because", audit=refuse)
    assert parents_of(obj) == (old,)


def test_nobody_becomes_its_own_ancestor() -> None:
    """A change of parents that would close a cycle is refused, directly or through others, before the audit."""
    told: list[Reparenting] = []
    obj = UvmObject({"name": "robin"})
    child = UvmObject(parents=[obj])
    grandchild = UvmObject(parents=[UvmObject(), child])
    for parents in ([obj], [child], [UvmObject(), grandchild]):
        with pytest.raises(ObjectError, match="own ancestor"):
            reparent(obj, parents, by="someone", reason="a test", audit=told.append)
    assert told == []
    assert parents_of(obj) == ()


@pytest.mark.parametrize(("by", "reason"), [("", "a reason"), ("someone", "")])
def test_reparenting_is_never_anonymous(by: str, reason: str) -> None:
    """Who and why are required."""
    with pytest.raises(ObjectError, match="who"):
        reparent(UvmObject(), [], by=by, reason=reason, audit=unheard)


def test_no_attribute_reaches_the_parents() -> None:
    """`parent*` can be neither written nor deleted as an attribute, and the verb is no attribute."""
    obj = UvmObject(parents=[UvmObject()])
    for name in ("parent*", "_parents"):
        with pytest.raises(ObjectError):
            setattr(obj, name, ())
        with pytest.raises(ObjectError):
            delattr(obj, name)
    assert not hasattr(obj, "reparent")
    assert not hasattr(obj, "become")


def test_become_replaces_the_first_parent_alone() -> None:
    """The state pointer moves, the other parents stay, and an object without a state has none to leave."""
    idle, busy, traits = UvmObject({"on": "idle"}), UvmObject({"on": "busy"}), UvmObject()
    cycle = UvmObject(parents=[idle, traits])
    become(cycle, busy)
    assert parents_of(cycle) == (busy, traits)
    assert cycle.on == "busy"
    with pytest.raises(ObjectError, match="state"):
        become(UvmObject(), busy)
    with pytest.raises(ObjectError, match="own ancestor"):
        become(cycle, UvmObject(parents=[cycle]))


def test_references_are_hexadecimal() -> None:
    """A new object has no number yet; a stored one is named by it, with its name where it has one."""
    obj = UvmObject({"name": "brick"})
    assert (reference(obj), repr(obj)) == ("oid:new", "<UvmObject oid:new>")
    obj._p_oid = (42).to_bytes(8, "big")
    assert (reference(obj), repr(obj), label(obj)) == ("oid:0x2a", "<UvmObject oid:0x2a>", "brick (oid:0x2a)")
    assert label(UvmObject({"name": 5})) == "oid:new"


def test_nothing_changes_without_a_transaction(session: Sessions) -> None:
    """A write, a deletion, a reparenting and a change of state raise outside a transaction and change nothing."""
    with session() as connection:
        first, second = UvmObject(), UvmObject()
        connection.root()["obj"] = obj = UvmObject({"x": 1}, [first])
        manager = connection.transaction_manager
        manager.commit()
        changes: list[Callable[[], object]] = [
            lambda: setattr(obj, "x", 2),
            lambda: setattr(obj, "y", 2),
            lambda: delattr(obj, "x"),
            lambda: reparent(obj, [second], by="someone", reason="a test", audit=unheard),
            lambda: become(obj, second),
            lambda: setattr(obj, "_p_changed", True),
        ]
        for change in changes:
            with pytest.raises(NoTransaction):
                change()
            assert dict(own_slots(obj)) == {"x": 1}
            assert parents_of(obj) == (first,)
            assert obj._p_changed is False
        manager.begin()
