"""Slots as plain data: what a method may be shown of an object, with other objects as references."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from BTrees.OOBTree import OOBTree, OOSet, OOTreeSet
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.cell.values import DEPTH, INTEGER_BITS, same
from batos.errors import MethodFailed
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject

#: None, bool, int, float, str, list, dict with text keys, and UvmObjects: what a slot that methods use may hold.
Data: TypeAlias = Any

#: How many values a method may be shown of its receiver, or leave in a slot; the loop looks at each several times.
MOST_VALUES: Final = 5_000
#: Characters of text that they may hold in all.
MOST_TEXT: Final = 512 * 1024

_MAPPINGS = (dict, PersistentMapping, OOBTree)
_SEQUENCES = (list, tuple, PersistentList)
_SETS = (set, frozenset, OOTreeSet, OOSet)
#: The kernel's own containers: read as plain data, never written by a method.
_RECORDS = (PersistentMapping, PersistentList, OOBTree, OOTreeSet, OOSet)


@dataclass(slots=True)
class SizeBudget:
    """What is left of the bounds while values are looked at; `objects` once one of them was an object."""

    values: int = MOST_VALUES
    text: int = MOST_TEXT
    objects: bool = False


def data_of(value: Any, what: str, room: SizeBudget | None = None) -> Data:
    """A copy of a slot's value in exact types; tuples and sets become lists. MethodFailed: it holds something else.

    `what` names the slot for the error. Objects stay what they are: whoever shows the copy puts references for them.
    """
    return _copied(value, what, room or SizeBudget(), ())


def _copied(value: Any, what: str, room: SizeBudget, above: tuple[int, ...]) -> Data:
    room.values -= 1
    if room.values < 0:
        raise _too_large(what)
    kind = type(value)
    if kind is str:
        return _text(value, what, room)
    if value is None or kind is bool:
        return value
    if kind is UvmObject:
        room.objects = True
        return value
    if (kind is int and value.bit_length() <= INTEGER_BITS) or (kind is float and math.isfinite(value)):
        return value
    if id(value) in above or len(above) >= DEPTH:
        raise MethodFailed(f"{what} holds itself, or is nested more than {DEPTH} deep")
    above = (*above, id(value))
    if isinstance(value, _MAPPINGS):
        return {_key(key, what, room): _copied(each, what, room, above) for key, each in value.items()}
    if isinstance(value, _SEQUENCES):
        return [_copied(each, what, room, above) for each in value]
    if isinstance(value, _SETS):
        return [_copied(each, what, room, above) for each in sorted(value, key=repr)]
    raise _no_data(what, value)


def _text(value: str, what: str, room: SizeBudget) -> str:
    room.text -= len(value)
    if room.text < 0:
        raise _too_large(what)
    return value


def _key(key: Any, what: str, room: SizeBudget) -> str:
    if type(key) is not str:
        raise MethodFailed(f"{what} has a key that is a {type(key).__name__}: only text is one for a method")
    return _text(key, what, room)


def _too_large(what: str) -> MethodFailed:
    return MethodFailed(
        f"{what} is too large for a method: at most {MOST_VALUES:,} values and {MOST_TEXT:,} characters",
        remedy="Keep less in one object, or use several.",
    )


def _no_data(what: str, value: Any) -> MethodFailed:
    kind = "a number out of bounds" if type(value) in (int, float) else f"a {type(value).__name__}"
    if isinstance(value, Behaviour):
        return MethodFailed(f"{what} holds behaviour ({kind}): send it as a message instead of reading it")
    return MethodFailed(f"{what} holds {kind}, which is no plain data: a method cannot be shown it")


def check_size(value: Any, what: str, room: SizeBudget) -> None:
    """Take plain data out of the room; MethodFailed as soon as it does not fit: what is too large is not walked."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        room.values -= 1
        parts = each.values() if type(each) is dict else each if type(each) is list else ()
        if len(waiting) + len(parts) > room.values:
            raise _too_large(what)
        waiting.extend(parts)
        for text in (each,) if type(each) is str else each if type(each) is dict else ():
            _text(text, what, room)


def matches(value: Any, data: Data) -> bool:
    """Whether a slot's value would be shown as this data, without making a copy of it."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return kind is type(data) and bool(value == data)
    if isinstance(value, _MAPPINGS):
        return (
            type(data) is dict
            and len(value) == len(data)
            and all(key in data and matches(each, data[key]) for key, each in value.items())
        )
    if isinstance(value, _SETS):
        value = sorted(value, key=repr)
    if isinstance(value, _SEQUENCES):
        return type(data) is list and len(value) == len(data) and all(map(matches, value, data))
    return same(value, data)


def is_record(value: Any) -> bool:
    """Whether the slot's value is one of the kernel's containers, which no method replaces."""
    return isinstance(value, _RECORDS)


def replace_leaves(value: Data, change: Callable[[Any], Any], leaf: Callable[[Any], bool]) -> Any:
    """Data with every leaf that `leaf` knows replaced by what `change` makes of it."""
    if type(value) is list:
        return [replace_leaves(each, change, leaf) for each in value]
    if type(value) is dict:
        return {key: replace_leaves(each, change, leaf) for key, each in value.items()}
    return change(value) if leaf(value) else value
