"""What one user's mission wrote into a shared object is another's in no way: neither read, nor told, nor lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.execution.method_mind import BRICK, MethodMind

from batos.image import ownership
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer
from batos.objects.prototype import UvmObject
from batos.protocol.errors import BatosError, NotFound

USERS = ("ann", "bob", "cy")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(USERS), st.sampled_from("ab"), st.integers(0, 9) | st.lists(st.text(max_size=2)) | st.none()
    ),
    max_size=12,
)
REMEMBERS = """
def keep_(self, text):
    before = getattr(self, 'asked_before', [])
    self.asked_before = [*before, text]
    self._p_changed = True
    return before
"""


@given(STEPS, st.dictionaries(st.sampled_from("ab"), st.integers(10, 19)))
def test_each_user_sees_what_was_everybodys_and_what_is_theirs(steps: list[Any], everybodys: dict[str, int]) -> None:
    """Whoever writes or deletes in whatever order: a slot has for each user their own value, else the first one."""
    obj = UvmObject(everybodys)
    theirs: dict[str, dict[str, Any]] = {user: dict(everybodys) for user in USERS}
    for user, slot, value in steps:
        buffer = WriteBuffer(user=user)
        buffer.write(obj, {slot: BufferedWrite(DELETED if value is None else value, "model")})
        buffer.merge_down()
        theirs[user].pop(slot, None)
        if value is not None:
            theirs[user][slot] = value
        for each in USERS:
            found = {name: kept.value for name in "ab" if (kept := WriteBuffer(user=each).find(obj, name)) is not None}
            assert found == theirs[each]
            assert ownership.slots_for(vars(obj), each).items() >= found.items()


async def test_what_a_method_remembers_is_told_to_its_user_alone(mind: MethodMind) -> None:
    """Not to another's run of it, not to their message for the slot, not where they inspect the object."""
    await mind.learn(keep_=REMEMBERS)

    async def keep(text: str, user: str) -> Any:
        return await mind.sent("keep_", text, user=user)

    assert await keep("My diagnosis is SECRETANN", "ann") == []
    assert await keep("hello", "bob") == []
    assert await keep("again", "ann") == ["My diagnosis is SECRETANN"]
    assert await mind.sent("asked_before", user="bob") == ["hello"]
    assert await mind.sent("asked_before", user="ann") == ["My diagnosis is SECRETANN", "again"]
    with pytest.raises(BatosError, match="asked_before"):
        await mind.sent("asked_before", user="cy")
    for name in (BRICK, f"{BRICK}.asked_before"):
        assert "SECRETANN" not in str(mind.uvm.readings.inspect(name, "bob"))
        assert "SECRETANN" in str(mind.uvm.readings.inspect(name, "ann"))


async def test_a_thought_is_its_users(mind: MethodMind) -> None:
    """Another's message for its answer finds nothing, nor do they see it by its name."""
    told = await mind.uvm.missions.ask({"text": "My diagnosis is SECRETANN", "user": "ann", "effort": "reflex"})
    assert "SECRETANN" not in str(mind.uvm.readings.inspect(BRICK, "bob"))
    with pytest.raises(NotFound, match="there is no object"):
        await mind.sent("answer", receiver=told["id"], user="bob")
    for look in (mind.uvm.readings.inspect, mind.uvm.readings.resolve_mission):
        with pytest.raises(NotFound, match="there is no"):
            look(told["id"], "bob")
        assert look(told["id"], "ann")
    assert await mind.sent("answer", receiver=told["id"], user="ann") == told["answer"]
