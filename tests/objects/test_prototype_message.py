"""Sending goes through one function, and only declared behaviour runs."""

from __future__ import annotations

from typing import Any

import pytest

from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import FoundSlot, UvmObject, send
from batos.protocol.errors import MessageNotUnderstood, ObjectError


class Recorder:
    """An interpreter that answers with what it was asked to interpret."""

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Tell the primitive's name."""
        return "primitive", receiver, name, args

    async def intent(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Tell the intent."""
        return "intent", receiver, found, selector, args

    async def method(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Tell the method."""
        return "method", receiver, found, selector, args


async def test_behaviour_runs_with_the_receiver_as_self() -> None:
    """Primitive, Intent and Method found in a parent are interpreted for the receiver of the message."""
    log, wish, method = Primitive("log"), Intent("be kind"), Method("f_", "pass")
    parent = UvmObject({"log_": log, "sage_facet_": wish, "f_": method})
    child = UvmObject(parents=[UvmObject(), parent])
    assert await send(Recorder(), child, "log_", "hello") == ("primitive", child, "log", ("hello",))
    assert await send(Recorder(), child, "sage_facet_", "q") == (
        "intent",
        child,
        FoundSlot(parent, wish, 1),
        "sage_facet_",
        ("q",),
    )
    assert await send(Recorder(), child, "f_") == ("method", child, FoundSlot(parent, method, 1), "f_", ())


@pytest.mark.parametrize("value", ["Write a method that greets.", 5, None, ["a"], {"intent": "be kind"}])
async def test_a_plain_value_answers_itself(value: Any) -> None:
    """A value is the answer to its selector; a string is never an order to generate, whatever its name."""
    obj = UvmObject({"sage_facet_": value})
    assert await send(Recorder(), obj, "sage_facet_") is value
    with pytest.raises(ObjectError, match="no arguments"):
        await send(Recorder(), obj, "sage_facet_", "query")


@pytest.mark.parametrize("selector", ["typo", "clone", "parent*", "_parents", "__class__", "_p_jar", "reparent", ""])
async def test_an_absent_or_reserved_selector_is_not_understood(selector: str) -> None:
    """What is no slot is not understood: nothing of Python, the database or the kernel answers a message."""
    with pytest.raises(MessageNotUnderstood):
        await send(Recorder(), UvmObject({"x": 1}, [UvmObject()]), selector)
