"""Laws of the object model, held against models of themselves on generated graphs and values."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from BTrees.Length import Length
from BTrees.OOBTree import OOBTree, OOTreeSet
from hypothesis import given
from hypothesis import strategies as st
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from transaction import TransactionManager
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.objects.method import DEEPEST, Intent, Method, Primitive
from batos.objects.mirror import Mirror
from batos.objects.prototype import FoundSlot, UvmObject, delegation, lookup, own_slots, parents_of
from batos.protocol.errors import ObjectError

NAMES = ("a", "b", "c_facet_", "at:put:")
MAPPINGS = (dict, PersistentMapping, OOBTree, IOBTree)
SEQUENCES = (list, PersistentList)
SETS = (set, OOTreeSet)
FRIENDS = st.builds(UvmObject, st.just({"name": "friend"}))
METHODS = st.builds(Method, st.just("f_"), st.just("pass"))


@st.composite
def graphs(draw: st.DrawFn) -> list[UvmObject]:
    """Up to seven objects with any parents among themselves: chains, diamonds, cycles, objects that are their own."""
    size = draw(st.integers(1, 7))
    objects = [
        UvmObject({name: f"{number}.{name}" for name in draw(st.sets(st.sampled_from(NAMES)))})
        for number in range(size)
    ]
    for each in objects:
        parents = draw(st.lists(st.sampled_from(objects), max_size=3))
        each.__setstate__({**own_slots(each), "_parents": tuple(parents)})  # no verb of the kernel closes a cycle
    return objects


def found_by_recursion(obj: UvmObject, name: str, seen: list[UvmObject], depth: int = 0) -> FoundSlot | None:
    """What delegation means, in its plainest form."""
    if any(each is obj for each in seen):
        return None
    seen.append(obj)
    if name in own_slots(obj):
        return FoundSlot(obj, own_slots(obj)[name], depth)
    answers = (found_by_recursion(parent, name, seen, depth + 1) for parent in parents_of(obj))
    return next((found for found in answers if found is not None), None)


def owned(value: Any) -> Iterator[Any]:
    """Every container inside the value that its object owns, the value itself included."""
    if isinstance(value, MAPPINGS):
        yield value
        for each in value.values():
            yield from owned(each)
    elif isinstance(value, SEQUENCES + SETS + (tuple,)):
        if not isinstance(value, tuple):
            yield value
        for each in value:
            yield from owned(each)
    elif isinstance(value, Length):
        yield value


def plain(value: Any) -> Any:
    """The value as nested tuples that compare equal if the values are alike: kinds, contents, references."""
    kind = type(value).__name__
    if isinstance(value, MAPPINGS):
        return kind, tuple(sorted((str(key), plain(each)) for key, each in value.items()))
    if isinstance(value, SETS):
        return kind, tuple(sorted(map(str, value)))
    if isinstance(value, (*SEQUENCES, tuple)):
        return kind, tuple(plain(each) for each in value)
    if isinstance(value, Length):
        return kind, value()
    if isinstance(value, (UvmObject, Method)):
        return kind, value.name if isinstance(value, UvmObject) else value.selector
    return kind, repr(value)


def disturb(container: Any) -> None:
    """Change the container in place."""
    if isinstance(container, IOBTree):
        container[-1] = "disturbed"
    elif isinstance(container, (dict, PersistentMapping, OOBTree)):
        container["disturbed"] = 1
    elif isinstance(container, SEQUENCES):
        container.append("disturbed")
    elif isinstance(container, Length):
        container.change(1)
    else:
        container.add("disturbed")


def containers_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Every kind of container that an object may own, around the inner values."""
    texts = st.text("abc", max_size=3)
    lists, texted = st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)
    return st.one_of(
        lists,
        lists.map(tuple),
        lists.map(PersistentList),
        lists.map(lambda items: [items, items]),
        texted,
        texted.map(PersistentMapping),
        texted.map(OOBTree),
        st.dictionaries(st.integers(0, 99), inner, max_size=3).map(IOBTree),
        st.sets(texts, max_size=3),
        st.sets(texts, max_size=3).map(OOTreeSet),
        st.integers(0, 9).map(Length),
    )


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.builds(Primitive, st.just("log")),
    FRIENDS,
    METHODS,
)
VALUES = st.recursive(ATOMS, containers_of, max_leaves=12)
SLOTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)
BEHAVIOUR = METHODS | st.builds(Intent, st.text(max_size=5))


@contextmanager
def opened(database: DB) -> Iterator[Connection]:
    """A connection with a transaction begun, aborted in the end if the caller did not commit it."""
    manager = TransactionManager(explicit=True)
    connection = database.open(manager)
    manager.begin()
    try:
        yield connection
    finally:
        if manager._txn is not None:
            manager.abort()
        connection.close()


@contextmanager
def seen_by_another(**objects: Any) -> Iterator[Any]:
    """Store the objects in a new database and give the root as a second connection sees it."""
    database = DB(MappingStorage())
    with opened(database) as first:
        first.root().update(objects)
        first.transaction_manager.commit()
        with opened(database) as second:
            yield second.root()
    database.close()


@given(graphs(), st.sampled_from((*NAMES, "absent")))
def test_delegation_is_what_its_model_says(objects: list[UvmObject], name: str) -> None:
    """On any graph, lookup finds what the recursive definition finds, as deep, from every receiver."""
    for obj in objects:
        found = lookup(obj, name)
        assert found == found_by_recursion(obj, name, [])
        assert getattr(obj, name, None) == (found.value if found else None)


@given(graphs(), st.sampled_from((*NAMES, "absent")))
def test_lookup_and_delegation_agree(objects: list[UvmObject], name: str) -> None:
    """The first object in delegation order that has the slot is the holder; each object comes once."""
    for obj in objects:
        order = list(delegation(obj))
        holder = next((each for each in order if name in own_slots(each)), None)
        found = lookup(obj, name)
        assert (found.holder if found else None) is holder
        assert len(set(order)) == len(order)


@given(SLOTS)
def test_a_clone_is_alike_and_shares_no_container(slots: dict[str, Any]) -> None:
    """A clone's slots equal the original's, share no owned container with it, and keep every reference."""
    original = UvmObject(slots)
    clone = original.clone()
    behaviour = {name for name, value in slots.items() if isinstance(value, (Method, Primitive))}
    before = plain(dict(own_slots(original)))
    assert plain(dict(own_slots(clone))) == plain({name: slots[name] for name in slots.keys() - behaviour})
    assert list(own_slots(clone)) == [name for name in slots if name not in behaviour]
    mine = [container for value in own_slots(original).values() for container in owned(value)]
    its = [container for value in own_slots(clone).values() for container in owned(value)]
    assert not {id(each) for each in mine} & {id(each) for each in its}
    for container in {id(each): each for each in its}.values():
        disturb(container)
    clone.novelty = 1
    assert plain(dict(own_slots(original))) == before


@given(SLOTS)
def test_a_clone_keeps_the_shape_of_sharing(slots: dict[str, Any]) -> None:
    """What was one container inside the original is one container inside its clone."""
    shared: list[Any] = []
    original = UvmObject({**slots, "once": shared, "again": {"deep": (shared,)}})
    clone = original.clone()
    assert clone.once is clone.again["deep"][0]
    assert clone.once is not shared
    names = [name for name in slots if name in own_slots(clone)]
    mine = [id(each) for name in names for each in owned(slots[name])]
    its = [id(each) for name in names for each in owned(own_slots(clone)[name])]
    assert [mine.index(each) for each in mine] == [its.index(each) for each in its]


@given(SLOTS, BEHAVIOUR)
def test_behaviour_is_never_copied(slots: dict[str, Any], behaviour: Method | Intent) -> None:
    """An object with behaviour is the one parent of its clone, whose own slots hold none; both answer alike."""
    original = UvmObject({**slots, "f_": behaviour}, [UvmObject({"name": "friend"})])
    clone = original.clone()
    assert parents_of(clone) == (original,)
    assert not any(isinstance(value, (Method, Intent, Primitive)) for value in own_slots(clone).values())
    assert all(plain(getattr(clone, name)) == plain(getattr(original, name)) for name in own_slots(original))


@given(SLOTS)
def test_a_clone_has_an_identity_of_its_own(slots: dict[str, Any]) -> None:
    """Original and clone, made and stored in one transaction, are two objects with equal slots for any reader."""
    original = UvmObject(slots)
    clone = original.clone()
    assert clone._p_oid is None
    with seen_by_another(original=original, clone=clone) as root:
        assert root["original"]._p_oid != root["clone"]._p_oid
        assert root["original"] is not root["clone"]
        assert all(plain(getattr(root["clone"], name)) == plain(getattr(root["original"], name)) for name in slots)
        its = [id(each) for value in own_slots(root["clone"]).values() for each in owned(value)]
        mine = [id(each) for value in own_slots(root["original"]).values() for each in owned(value)]
        assert not set(mine) & set(its)


@given(SLOTS)
def test_slots_come_back_from_a_second_connection(slots: dict[str, Any]) -> None:
    """What one connection commits another reads alike, again after the object was a ghost in between."""
    expected = plain(slots)
    with seen_by_another(obj=UvmObject(slots)) as root:
        obj = root["obj"]
        assert plain(dict(own_slots(obj))) == expected
        obj._p_deactivate()
        assert obj._p_changed is None
        assert plain({name: getattr(obj, name) for name in slots}) == expected


def findings(objects: list[UvmObject], name: str) -> list[tuple[Any, int] | None]:
    """What each object finds under the name, and how deep."""
    found = [lookup(obj, name) for obj in objects]
    return [(each.value, each.depth) if each else None for each in found]


@given(graphs(), st.sampled_from((*NAMES, "absent")))
def test_graphs_come_back_from_a_second_connection(objects: list[UvmObject], name: str) -> None:
    """Any graph, cycles included, delegates for another connection as it did when it was made."""
    expected = findings(objects, name)
    stored = {f"obj{number}": obj for number, obj in enumerate(objects)}
    with seen_by_another(**stored) as root:
        assert findings([root[key] for key in stored], name) == expected


@given(SLOTS)
def test_slots_survive_pickle(slots: dict[str, Any]) -> None:
    """A pickled object comes back alike, with its parents, as another object without identity."""
    obj = UvmObject(slots, [UvmObject({"name": "parent"})])
    again = pickle.loads(pickle.dumps(obj))
    assert again is not obj
    assert again._p_oid is None
    assert plain(dict(own_slots(again))) == plain(slots)
    assert again.name == "parent"


@given(SLOTS, SLOTS)
def test_an_abort_is_the_inverse_of_writing(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whatever is written, deleted or changed in place and marked, an abort restores what was committed."""
    with seen_by_another(obj=UvmObject(before)) as root:
        obj = root["obj"]
        expected = plain(dict(own_slots(obj)))
        for value in dict(own_slots(obj)).values():
            for container in {id(each): each for each in owned(value)}.values():
                disturb(container)
        for name in before:
            delattr(obj, name)
        for name, value in after.items():
            setattr(obj, name, value)
        obj._p_changed = True
        obj._p_jar.transaction_manager.abort()
        obj._p_jar.transaction_manager.begin()
        assert plain(dict(own_slots(obj))) == expected


@st.composite
def tangles(draw: st.DrawFn) -> Any:
    """A container with others inside, in any of which any other may stand: shared, or around itself."""
    made: list[Any] = [kind() for kind in draw(st.lists(st.sampled_from((list, dict)), min_size=1, max_size=4))]
    for _ in range(draw(st.integers(0, 3))):
        made.append(tuple(draw(st.lists(st.sampled_from(made), min_size=1, max_size=2))))
    for container in made:
        inside = draw(st.lists(st.sampled_from(made), max_size=3))
        if isinstance(container, list):
            container.extend(inside)
        elif isinstance(container, dict):
            container.update(enumerate(inside))
    return draw(st.sampled_from(made))


def walk(value: Any) -> tuple[list[Any], list[tuple[str, list[int]]]]:
    """Every container from the first on, each once, and for each its kind and which containers it holds."""
    order, numbers, shape = [value], {id(value): 0}, []
    for container in order:
        held = []
        for each in container.values() if isinstance(container, dict) else container:
            if id(each) not in numbers:
                numbers[id(each)] = len(order)
                order.append(each)
            held.append(numbers[id(each)])
        shape.append((type(container).__name__, held))
    return order, shape


@given(tangles())
def test_any_tangle_is_copied_as_it_is(value: Any) -> None:
    """Rings and shared containers, tuples too, have in the copy the shape that they have, and share nothing with it."""
    clone = UvmObject({"a": value}).clone()
    mine, shape = walk(value)
    its, same = walk(clone.a)
    assert same == shape
    assert not {id(each) for each in mine} & {id(each) for each in its if not isinstance(each, tuple)}


@given(tangles())
def test_any_tangle_is_shown(value: Any) -> None:
    """A mirror shows every ring as JSON can hold it, and comes to an end."""
    json.dumps(Mirror(UvmObject({"a": value})).describe(), allow_nan=False)


@given(st.lists(st.sampled_from((list, tuple, dict)), max_size=3 * DEEPEST))
def test_any_depth_is_copied_or_refused(kinds: list[type]) -> None:
    """Containers in one another are copied or, beyond the depth that is allowed, refused in words; all are shown."""
    value: Any = [1]
    for kind in kinds:
        value = {"in": value} if kind is dict else kind([value])
    obj = UvmObject({"a": value})
    json.dumps(Mirror(obj).describe(), allow_nan=False)
    if len(kinds) < DEEPEST:
        assert obj.clone().a == value
    else:
        with pytest.raises(ObjectError, match="deep"):
            obj.clone()
