"""Plain data: the copies of slots that a method sees, bounded in size, with other objects as references."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from BTrees.OOBTree import OOBTree, OOSet, OOTreeSet
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.cell.values import DEPTH, INTEGER_BITS, same
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject
from batos.protocol.errors import MethodFailed

#: None, bool, int, float, str, list, dict with text keys, and UvmObject: the types of slots that methods use.
Data: TypeAlias = Any

#: The most values of a receiver that a method may see or write; the event loop visits each several times.
MOST_VALUES: Final = 5_000
#: The most characters of text in all these values.
MOST_TEXT: Final = 512 * 1024

_MAPPINGS = (dict, PersistentMapping, OOBTree)
_SEQUENCES = (list, tuple, PersistentList)
_SETS = (set, frozenset, OOTreeSet, OOSet)
#: The kernel's own containers: read as plain data, never written by a method.
_RECORDS = (PersistentMapping, PersistentList, OOBTree, OOTreeSet, OOSet)


@dataclass(slots=True)
class SizeBudget:
    """The number of values and characters that may still be taken. `has_objects`: one of those taken is an object."""

    values: int = MOST_VALUES
    text: int = MOST_TEXT
    has_objects: bool = False


def data_of(value: object, what: str, room: SizeBudget | None = None) -> Data:
    """Return a copy of a slot's value in exact types; tuples and sets become lists, UvmObjects stay as they are.

    `what` names the slot in errors. The size of the copy is subtracted from `room`.

    Raises: MethodFailed: the value is too large or holds something that is not plain data.
    """
    return _copy(value, what, room or SizeBudget(), ())


def _copy(value: Any, what: str, room: SizeBudget, above: tuple[int, ...]) -> Data:
    """Copy one value; `above` are the ids of the containers around it, which find a cycle."""
    room.values -= 1
    if room.values < 0:
        raise _too_large(what)
    kind = type(value)
    if kind is str:
        return _text(value, what, room)
    if value is None or kind is bool:
        return value
    if kind is UvmObject:
        room.has_objects = True
        return value
    if (kind is int and value.bit_length() <= INTEGER_BITS) or (kind is float and math.isfinite(value)):
        return value
    if id(value) in above or len(above) >= DEPTH:
        raise MethodFailed(f"{what} holds itself, or is nested more than {DEPTH} deep")
    above = (*above, id(value))
    if isinstance(value, _MAPPINGS):
        return {_key(key, what, room): _copy(each, what, room, above) for key, each in value.items()}
    if isinstance(value, _SEQUENCES):
        return [_copy(each, what, room, above) for each in value]
    if isinstance(value, _SETS):
        return [_copy(each, what, room, above) for each in sorted(value, key=repr)]
    raise _no_data(what, value)


def _text(value: str, what: str, room: SizeBudget) -> str:
    """Return a text and subtract its length from the budget. Raises: MethodFailed: the budget is used up."""
    room.text -= len(value)
    if room.text < 0:
        raise _too_large(what)
    return value


def _key(key: object, what: str, room: SizeBudget) -> str:
    """Return the key of a mapping and subtract its length. Raises: MethodFailed: the key is no text."""
    if type(key) is not str:
        raise MethodFailed(f"{what} has a key that is a {type(key).__name__}: only text is one for a method")
    return _text(key, what, room)


def _too_large(what: str) -> MethodFailed:
    return MethodFailed(
        f"{what} is too large for a method: at most {MOST_VALUES:,} values and {MOST_TEXT:,} characters",
        remedy="Keep less in one object, or use several.",
    )


def _no_data(what: str, value: object) -> MethodFailed:
    kind = "a number out of bounds" if type(value) in (int, float) else f"a {type(value).__name__}"
    if isinstance(value, Behaviour):
        return MethodFailed(f"{what} holds behaviour ({kind}): send it as a message instead of reading it")
    return MethodFailed(f"{what} holds {kind}, which is not plain data: a method cannot be shown it")


def check_size(value: object, what: str, room: SizeBudget) -> None:
    """Subtract the size of plain data from the budget.

    The check ends at the limit, so that huge data is not walked whole.

    Raises: MethodFailed: the data does not fit.
    """
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


def matches(value: object, data: Data) -> bool:
    """Test if a copy of the slot's value would equal this data, without making the copy."""
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


def describe_type(value: object) -> str:
    """Return the type of a value in words, for an error."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def is_record(value: object) -> bool:
    """Test if the slot's value is one of the kernel's containers, which no method replaces."""
    return isinstance(value, _RECORDS)


def replace_leaves(value: Data, change: Callable[[Any], Any], leaf: Callable[[Any], bool]) -> Any:
    """Return a copy of the data in which each leaf that `leaf` accepts is replaced by `change(leaf)`."""
    if type(value) is list:
        return [replace_leaves(each, change, leaf) for each in value]
    if type(value) is dict:
        return {key: replace_leaves(each, change, leaf) for key, each in value.items()}
    return change(value) if leaf(value) else value
