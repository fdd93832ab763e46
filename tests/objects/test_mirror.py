"""A mirror tells what is there and leaves no trace of having looked."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from math import inf

import pytest
from BTrees.OOBTree import OOBTree
from ZODB.Connection import Connection

from batos.objects.method import Intent, Method, Primitive
from batos.objects.mirror import Mirror, as_json
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ObjectError

Sessions = Callable[[], AbstractContextManager[Connection]]


def test_a_mirror_tells_who_defines_what() -> None:
    """Slots, lineage, the holder of a selector, and the source of a method."""
    top = UvmObject({"f_": Method("f_", "return 1"), "g_": Intent("be kind")})
    obj = UvmObject({"x": "text"}, [UvmObject(), top])
    mirror = Mirror(obj)
    assert mirror.slots() == own_slots(obj)
    assert mirror.lineage()[0] is obj
    assert mirror.lineage()[2] is top
    assert mirror.source("f_") == "return 1"
    assert [mirror.source(name) for name in ("g_", "x", "typo")] == [None, None, None]


def test_a_description_is_json(session: Sessions) -> None:
    """Every kind of slot value has a form in JSON, and records are shown as references."""
    with session() as connection:
        friend = UvmObject()
        slots = {
            "text": "t",
            "number": 1.5,
            "endless": inf,
            "friend": friend,
            "tree": OOBTree(),
            "nested": {"list": [friend, (1, None)], 3: {"b", "a"}},
            "bytes": b"123",
            "time": datetime(2026, 1, 2, tzinfo=UTC),
            "log_": Primitive("log"),
            "f_": Method("f_", "return 1"),
            "g_": Intent("be kind", kind="facet"),
            "complex": 1j,
        }
        connection.root()["obj"] = obj = UvmObject(slots, [friend])
        assert Mirror(obj).describe()["oid"] == "oid:new"
        connection.transaction_manager.commit()
        connection.transaction_manager.begin()
        seen = json.loads(json.dumps(Mirror(obj).describe(), allow_nan=False))
        oid = f"oid:{int.from_bytes(friend._p_oid or b'', 'big'):#x}"
        assert seen["oid"].startswith("oid:0x")
        assert seen["parents"] == [oid]
        assert seen["lineage"] == [seen["oid"], oid]
        assert seen["slots"]["nested"] == {"list": [oid, [1, None]], "3": ["a", "b"]}
        assert (seen["slots"]["friend"], seen["slots"]["endless"], seen["slots"]["bytes"]) == (oid, "inf", "3 bytes")
        assert seen["slots"]["tree"].startswith("oid:0x")
        assert seen["slots"]["time"] == "2026-01-02T00:00:00+00:00"
        assert seen["slots"]["log_"] == {"primitive": "log"}
        assert seen["slots"]["f_"]["method"]["source"] == "return 1"
        assert seen["slots"]["g_"]["intent"]["kind"] == "facet"
        assert seen["slots"]["complex"] == "1j"


@pytest.mark.parametrize("look", [Mirror.describe, Mirror.slots, Mirror.lineage])
def test_looking_leaves_no_trace(session: Sessions, look: Callable[[Mirror], object]) -> None:
    """Looking marks nothing, and loads neither what a slot refers to nor any container that is a record of its own."""
    with session() as connection:
        tree: OOBTree[str, int] = OOBTree({str(number): number for number in range(100)})
        obj = UvmObject({"friend": UvmObject(), "tree": tree, "notes": [1]}, [UvmObject()])
        connection.root()["obj"] = obj
        connection.transaction_manager.commit()
    with session() as connection:
        obj = connection.root()["obj"]
        look(Mirror(obj))
        assert obj.friend._p_changed is None
        assert obj.tree._p_changed is None
        assert obj._p_changed is False
        assert connection._registered_objects == []


def test_a_container_inside_itself_is_cut() -> None:
    """What stands in itself is shown once and then as "…"; what stands in two places is shown in both."""
    ring: list[object] = [1]
    ring.append({"again": ring})
    twice = [1]
    assert as_json(ring) == [1, {"again": "…"}]
    assert as_json([twice, twice]) == [[1], [1]]


def test_what_is_nested_without_end_is_cut() -> None:
    """100,000 containers in one another are shown as far as they may stand, in a method's record too."""
    value: object = 1
    for number in range(100_000):
        value = ([value], (value,), {"in": value})[number % 3]
    for each in (value, {"key": value}, Method("f_", "pass", checks=({"deep": value},))):
        assert "…" in json.dumps(Mirror(UvmObject({"x": each})).describe(), ensure_ascii=False)
    with pytest.raises(ObjectError, match="nested too deep"):
        Intent("be kind", when={"deep": value})


def test_numbers_without_end_are_shown() -> None:
    """A whole number of more digits than JSON's writer takes is shown in base 16; as a key it is cut."""
    assert json.loads(json.dumps(as_json({"n": [16**5000], 10**5000: -1}))) == {"n": ["0x1" + "0" * 5000], "…": -1}
