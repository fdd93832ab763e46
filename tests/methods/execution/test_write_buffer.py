"""Sheets: changes kept apart until what they rest on was looked at again, and then laid down together or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from batos.image.records import SLOT_TRUST, TRUST
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer, trust_of
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import MethodFailed

SLOTS = ("a", "b", "c")
values = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.floats(0, 3), st.lists(st.integers(0, 2), max_size=2)
)


def test_a_sheet_is_read_before_what_is_below_it() -> None:
    """Its own changes, then the buffers' below, then the object, then its parents; a deleted slot is its parent's."""
    parent = UvmObject({"a": "parent's", "b": "parent's"})
    obj = UvmObject({"a": "own"}, (parent,))
    below = WriteBuffer()
    buffer = WriteBuffer(below)
    assert _value(buffer, obj, "a") == "own"
    below.write(obj, {"a": BufferedWrite("below", "model"), "c": BufferedWrite("below", "model")})
    assert (_value(buffer, obj, "a"), _value(buffer, obj, "c")) == ("below", "below")
    buffer.write(obj, {"a": BufferedWrite(DELETED, "model")})
    buffer.write(parent, {"b": BufferedWrite("written", "model")})
    assert (_value(buffer, obj, "a"), _value(buffer, obj, "b")) == ("parent's", "written")
    assert buffer.find(obj, "nothing") is None
    assert dict(own_slots(obj)) == {"a": "own"}


def _value(buffer: WriteBuffer, obj: UvmObject, slot: str) -> Any:
    kept = buffer.read(obj, slot)
    return None if kept is None else kept.value


def test_what_moved_is_named_only_if_something_rests_on_it() -> None:
    """A slot that was read and is another now; whoever changes nothing rests on nothing."""
    obj = UvmObject({"a": 1, "b": 1})
    buffer = WriteBuffer()
    buffer.read(obj, "a")
    buffer.read(obj, "c")
    obj.a = 2
    assert buffer.stale_read() is None
    buffer.write(obj, {"b": BufferedWrite(2, "model")})
    assert "'a' of" in str(buffer.stale_read())
    obj.a = 1
    assert buffer.stale_read() is None
    obj.c = None
    assert "'c' of" in str(buffer.stale_read())
    del obj.c
    obj.a = True  # equal to 1, and another value
    assert "'a' of" in str(buffer.stale_read())


def test_what_became_behaviour_has_moved() -> None:
    """A slot that was data and holds an intent now is not what it was."""
    obj = UvmObject({"a": 1})
    buffer = WriteBuffer()
    buffer.read(obj, "a")
    buffer.write(obj, {"b": BufferedWrite(1, "model")})
    obj.a = Intent("Sing.")
    assert buffer.stale_read() is not None
    with pytest.raises(MethodFailed, match="holds behaviour"):
        WriteBuffer().read(obj, "a")


def test_what_a_sheet_rests_on_its_own_sheet_below_rests_on() -> None:
    """What a nested run read counts for the one that sent the message, if that changes anything."""
    obj = UvmObject({"a": 1})
    below = WriteBuffer()
    above = WriteBuffer(below)
    above.read(obj, "a")
    assert above.merge_down() == []
    obj.a = 2
    assert below.stale_read() is None
    below.write(obj, {"b": BufferedWrite(1, "model")})
    assert below.stale_read() is not None


def test_what_is_laid_into_the_image_says_what_was_there() -> None:
    """Each change with what it was; what has its value already, and what was never there to be deleted, is none."""
    obj = UvmObject({"a": [1], "b": 2, "c": 3})
    buffer = WriteBuffer()
    buffer.write(
        obj, {"a": BufferedWrite([1, 2], "model"), "b": BufferedWrite(2, "model"), "c": BufferedWrite(DELETED, "model")}
    )
    buffer.write(obj, {"d": BufferedWrite(DELETED, "model"), "e": BufferedWrite(5, "model")})
    changed = [(each["slot"], each["had"], each["former"]) for each in buffer.merge_down()]
    assert changed == [("a", True, [1]), ("c", True, 3), ("e", False, None)]
    assert dict(own_slots(obj)) == {"a": [1, 2], "b": 2, "e": 5}


def test_trust_is_kept_by_slot_where_it_is_less_than_a_models() -> None:
    """Written beside a file, a slot is external; written anew from nothing of the kind it is not any more."""
    obj = UvmObject({"a": 1})
    buffer = WriteBuffer()
    buffer.write(
        obj, {"a": BufferedWrite(2, "external"), "b": BufferedWrite(1, "model"), "c": BufferedWrite(1, "tool")}
    )
    buffer.merge_down()
    assert own_slots(obj)[SLOT_TRUST] == {"a": "external", "c": "tool"}
    assert [trust_of(own_slots(obj), slot) for slot in SLOTS] == ["external", "model", "tool"]
    again = WriteBuffer()
    assert again.read(obj, "a") == (obj, 2, "external")
    again.write(obj, {"a": BufferedWrite(3, "user"), "c": BufferedWrite(DELETED, "user")})
    again.merge_down()
    assert own_slots(obj)[SLOT_TRUST] == {}


@given(kept=st.dictionaries(st.sampled_from(SLOTS), st.sampled_from(TRUST)), whole=st.sampled_from([None, *TRUST]))
def test_no_slot_is_trusted_more_than_a_model_or_its_object(kept: dict[str, str], whole: str | None) -> None:
    """The least of all that is said of it."""
    slots = {SLOT_TRUST: kept, **({} if whole is None else {"lineage_trust": whole})}
    for slot in SLOTS:
        expected = max(TRUST.index(each) for each in ("model", kept.get(slot, "user"), whole or "user"))
        assert trust_of(slots, slot) == TRUST[expected]


class Parts(RuleBasedStateMachine):
    """Two parts of a mission change two objects, each over a buffer of its own that may be given up or laid down."""

    def __init__(self) -> None:
        super().__init__()
        self.objects = [UvmObject({"a": 0}), UvmObject({"b": 0})]
        self.image: dict[tuple[int, str], Any] = {(0, "a"): 0, (1, "b"): 0}
        self.buffers: list[WriteBuffer | None] = [None, None]
        self.read: list[dict[tuple[int, str], Any]] = [{}, {}]
        self.written: list[dict[tuple[int, str], Any]] = [{}, {}]

    @rule(part=st.integers(0, 1))
    def begin(self, part: int) -> None:
        """A part begins anew; what it had is given up."""
        self.buffers[part], self.read[part], self.written[part] = WriteBuffer(), {}, {}

    @rule(part=st.integers(0, 1), place=st.integers(0, 1), slot=st.sampled_from(SLOTS))
    def look(self, part: int, place: int, slot: str) -> None:
        """It reads a slot: its own change, else what is there."""
        buffer = self.buffers[part]
        if buffer is None:
            return
        kept = buffer.read(self.objects[place], slot)
        here = {**self.image, **self.written[part]}.get((place, slot), DELETED)
        assert (DELETED if kept is None else kept.value) == here
        if (place, slot) not in self.written[part]:
            self.read[part].setdefault((place, slot), here)

    @rule(part=st.integers(0, 1), place=st.integers(0, 1), slot=st.sampled_from(SLOTS), value=values | st.just(DELETED))
    def write(self, part: int, place: int, slot: str, value: Any) -> None:
        """It changes one."""
        buffer = self.buffers[part]
        if buffer is not None:
            buffer.write(self.objects[place], {slot: BufferedWrite(value, "model")})
            self.written[part][place, slot] = value

    @rule(part=st.integers(0, 1))
    def end(self, part: int) -> None:
        """It ends well: laid down if all that it read is so still, or it changes nothing."""
        buffer = self.buffers[part]
        if buffer is None:
            return
        now = {each: self.image.get(each, DELETED) for each in self.read[part]}
        sound = all(type(now[each]) is type(seen) and now[each] == seen for each, seen in self.read[part].items())
        assert (buffer.stale_read() is None) == (sound or not self.written[part])
        if buffer.stale_read() is None:
            buffer.merge_down()
            self.image |= self.written[part]
            self.image = {each: value for each, value in self.image.items() if value is not DELETED}
        self.buffers[part] = None

    @invariant()
    def the_image_has_what_was_laid_down(self) -> None:
        """Nothing of a buffer that was not."""
        there = {(at, name): value for at, obj in enumerate(self.objects) for name, value in own_slots(obj).items()}
        assert repr(sorted(there.items())) == repr(sorted(self.image.items()))


TestParts = Parts.TestCase
TestParts.settings = settings(stateful_step_count=20)
