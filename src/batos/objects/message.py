"""Sending a message: find the slot that answers it, and run, interpret or return what the slot holds."""

from __future__ import annotations

from typing import Any, Protocol

from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import FoundSlot, UvmObject, label, lookup
from batos.protocol.errors import MessageNotUnderstood, ObjectError


class Interpreter(Protocol):
    """Carries out the behaviour that `send` finds. `found` names the object that holds it, `receiver` stays
    the `self`.
    """

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run the kernel function of that name."""

    async def intent(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Interpret an Intent, or generate from it."""

    async def method(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Run a Method."""


async def send(interpreter: Interpreter, receiver: UvmObject, selector: str, *args: object) -> Any:
    """Send a message to an object and return the answer.

    A plain value is its own answer: text in a slot is never taken for a wish that a model should act on.

    Raises: MessageNotUnderstood: neither the receiver nor its parents have a slot of that name. ObjectError: arguments
    were sent to a plain value.
    """
    found = lookup(receiver, selector)
    if found is None:
        raise MessageNotUnderstood(label(receiver), selector)
    if isinstance(found.value, Primitive):
        return await interpreter.primitive(receiver, found.value.name, args)
    if isinstance(found.value, Intent):
        return await interpreter.intent(receiver, found, selector, args)
    if isinstance(found.value, Method):
        return await interpreter.method(receiver, found, selector, args)
    if args:
        raise ObjectError(f"{selector!r} of {label(receiver)} is a value and takes no arguments")
    return found.value
