"""Slots as plain data: what a method may be shown of an object, with other objects as references."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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

#: How many values one slot may hold and still be shown to a method; looking at them all takes a few milliseconds.
MOST_VALUES: Final = 20_000
#: Characters of text that it may hold in all.
MOST_TEXT: Final = 512 * 1024

_MAPPINGS = (dict, PersistentMapping, OOBTree)
_SEQUENCES = (list, tuple, PersistentList)
_SETS = (set, frozenset, OOTreeSet, OOSet)
#: The kernel's own containers: read as plain data, never written by a method.
_RECORDS = (PersistentMapping, PersistentList, OOBTree, OOTreeSet, OOSet)


@dataclass(slots=True)
class _Room:
    """What is left of the bounds while a value is looked at."""

    what: str
    values: int = MOST_VALUES
    text: int = MOST_TEXT

    def take(self, values: int = 1, text: int = 0) -> None:
        self.values -= values
        self.text -= text
        if self.values < 0 or self.text < 0:
            raise MethodFailed(
                f"{self.what} is too large for a method: at most {MOST_VALUES:,} values and {MOST_TEXT:,} characters",
                remedy="Keep less in one slot, or several objects.",
            )


def data_of(value: Any, what: str) -> Data:
    """A copy of a slot's value in exact types; tuples and sets become lists. MethodFailed: it holds something else.

    `what` names the slot for the error. Objects stay what they are: whoever shows the copy puts references for them.
    """
    return _copied(value, _Room(what), ())


def _copied(value: Any, room: _Room, above: tuple[int, ...]) -> Data:
    room.take()
    kind = type(value)
    if value is None or kind is bool or kind is UvmObject:
        return value
    if kind is str:
        room.take(0, len(value))
        return value
    if kind is int and value.bit_length() <= INTEGER_BITS:
        return value
    if kind is float and math.isfinite(value):
        return value
    if id(value) in above or len(above) >= DEPTH:
        raise MethodFailed(f"{room.what} holds itself, or is nested more than {DEPTH} deep")
    above = (*above, id(value))
    if isinstance(value, _MAPPINGS):
        return {_key(key, room): _copied(each, room, above) for key, each in value.items()}
    if isinstance(value, _SEQUENCES):
        return [_copied(each, room, above) for each in value]
    if isinstance(value, _SETS):
        return [_copied(each, room, above) for each in sorted(value, key=repr)]
    raise _no_data(room.what, value)


def _key(key: Any, room: _Room) -> str:
    if type(key) is not str:
        raise MethodFailed(f"{room.what} has a key that is a {type(key).__name__}: only text is one for a method")
    room.take(0, len(key))
    return key


def _no_data(what: str, value: Any) -> MethodFailed:
    kind = "a number out of bounds" if type(value) in (int, float) else f"a {type(value).__name__}"
    if isinstance(value, Behaviour):
        return MethodFailed(f"{what} holds behaviour ({kind}): send it as a message instead of reading it")
    return MethodFailed(f"{what} holds {kind}, which is no plain data: a method cannot be shown it")


def is_record(value: Any) -> bool:
    """Whether the slot's value is one of the kernel's containers, which no method replaces."""
    return isinstance(value, _RECORDS)


def replaced(value: Data, change: Callable[[Any], Any], leaf: Callable[[Any], bool]) -> Any:
    """Data with every leaf that `leaf` knows replaced by what `change` makes of it."""
    if type(value) is list:
        return [replaced(each, change, leaf) for each in value]
    if type(value) is dict:
        return {key: replaced(each, change, leaf) for key, each in value.items()}
    return change(value) if leaf(value) else value


def alike(one: Mapping[str, Data], other: Mapping[str, Data]) -> bool:
    """Whether two sets of slots are the same, in value and in type; objects by identity."""
    return same(dict(one), dict(other))
