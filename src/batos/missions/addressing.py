"""The address of a user's message: its receiver, the slot that answers there, and its arguments as a kernel's."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from pydantic import JsonValue

from batos.agency.lookup import find_object
from batos.image.roots import Root
from batos.methods.execution.primitives import MOST_ROOM, ROOM
from batos.objects.prototype import FoundSlot, UvmObject, delegation, is_reserved, lookup, own_slots
from batos.protocol.brief import TEXT_LIMIT, Message
from batos.protocol.errors import MessageNotUnderstood, ObjectError

#: The kernel functions that begin a cycle, and that ask a persona's model.
START: Final = "orchestrator.start_cognitive_cycle_for"
INFER: Final = "llm.infer"

_DATA: Final = "Send plain data: text, numbers, lists, objects."


@dataclass(frozen=True, slots=True)
class AddressedMessage:
    """A message with its receiver and the slot that answers it."""

    message: Message
    receiver: UvmObject
    found: FoundSlot

    @property
    def text(self) -> str:
        """Return the single text argument. Raises: ObjectError: the arguments are others, or the text is too long."""
        return _text(self.message)

    def arguments_of(self, primitive: str) -> tuple[Any, ...]:
        """Return the arguments as this kernel function takes them.

        Raises: ObjectError: the function takes others, or no plain data.
        """
        convert = _ARGUMENTS.get(primitive)
        if convert is None:
            raise ObjectError(
                f"{self.message.selector!r} of {self.message.receiver} is the kernel's own ({primitive}) "
                "and takes no plain data",
                remedy="It is a step of a cycle: ask a question, and the cycle runs it.",
            )
        return convert(self.message)


def address(root: Root, message: Message, user: str) -> AddressedMessage:
    """Return a user's message with its receiver and the slot that answers the selector.

    Raises: NotFound: there is no such object, or it belongs to another user. MessageNotUnderstood: there is no such
    slot; the remedy names similar ones.
    """
    receiver = find_object(root, message.receiver, user)
    found = lookup(receiver, message.selector)
    if found is None:
        raise _not_understood_error(receiver, message)
    return AddressedMessage(message, receiver, found)


def _not_understood_error(receiver: UvmObject, message: Message) -> MessageNotUnderstood:
    """Return the error of a selector that nothing answers; its remedy names similar selectors."""
    known = {name for holder in delegation(receiver) for name in own_slots(holder) if not is_reserved(name)}
    near = difflib.get_close_matches(message.selector, sorted(known), 3, 0.5)
    listed = f"`batos inspect {message.receiver}` lists its own messages; it inherits those of its parents."
    remedy = f"Did you mean {' or '.join(near)}?" if near else listed
    return MessageNotUnderstood(message.receiver, message.selector).advise(remedy)


def checked_question(selector: str, text: str) -> str:
    """Return a text that becomes a mind's question. Raises: ObjectError: the text is too long for one."""
    if len(text) > TEXT_LIMIT:
        raise ObjectError(f"{selector!r} takes at most {TEXT_LIMIT} characters, not {len(text)}")
    return text


def _text(message: Message) -> str:
    """Return the single text argument of a message. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    if len(args) != 1 or not isinstance(args[0], str) or not args[0].strip():
        raise ObjectError(f"{message.selector!r} takes one text", remedy=_DATA)
    return checked_question(message.selector, args[0])


def _query(message: Message) -> tuple[str, int]:
    """Return the query and the size in bytes for a recall. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    room = args[1] if len(args) == 2 else ROOM
    if not args or len(args) > 2 or not isinstance(args[0], str) or not _whole(room) or not 0 <= room <= MOST_ROOM:
        raise ObjectError(f"{message.selector!r} takes a text and, if need be, bytes up to {MOST_ROOM}", remedy=_DATA)
    return args[0], room


def _arguments(message: Message) -> tuple[JsonValue, ...]:
    """Return the arguments as they are: the function checks them itself."""
    return tuple(message.arguments)


def _none(message: Message) -> tuple[()]:
    """Return no arguments. Raises: ObjectError: the message has some."""
    if message.arguments:
        raise ObjectError(f"{message.selector!r} takes no arguments")
    return ()


def _places(message: Message) -> tuple[int, ...]:
    """Return the first turn's position and the number of turns, as far as given.

    Raises: ObjectError: the arguments are others.
    """
    args = message.arguments
    if len(args) > 2 or not all(_whole(each) for each in args):
        raise ObjectError(f"{message.selector!r} takes the first turn's position and how many turns", remedy=_DATA)
    return tuple(each for each in args if _whole(each))


def _whole(value: JsonValue) -> TypeGuard[int]:
    """Test if the value is an integer of at most 32 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


#: Kernel functions that a message may run, each with the function that converts its arguments from plain data.
_ARGUMENTS: Final[Mapping[str, Callable[[Message], tuple[Any, ...]]]] = {
    "traits.log": _arguments,
    "traits.recall": _query,
    "catalog.search": _query,
    "catalog.index": _arguments,
    "catalog.forget": _arguments,
    "llm.embed": _arguments,
    "effect.append": _arguments,
    "effect.post": _arguments,
    START: lambda message: (_text(message),),
    "conversation.turns": _places,
    "conversation.compact": _none,
    "conversation.recompact": _none,
}
