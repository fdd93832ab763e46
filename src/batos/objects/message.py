"""Sending: the one door through which a message finds what answers it; reading never thinks, sending may."""

from __future__ import annotations

from typing import Any, Protocol

from batos.errors import MessageNotUnderstood, ObjectError
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import Found, UvmObject, label, lookup


class Interpreter(Protocol):
    """What gives behaviour its meaning; `found` tells the holder, `receiver` stays the `self` of the message."""

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run the kernel function of that name."""

    async def intent(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """Interpret an Intent, or generate from it."""

    async def method(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """Run a Method."""


async def send(interpreter: Interpreter, receiver: UvmObject, selector: str, *args: Any) -> Any:
    """What the receiver answers to the message.

    A plain value answers itself, whatever it is: a string is never an order to generate. MessageNotUnderstood:
    no slot of that name here or among the parents. ObjectError: arguments were sent to a plain value.
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
