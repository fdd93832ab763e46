"""A mirror reads an object from outside: no message is sent, nothing is changed, no model is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import fields
from datetime import date
from math import isfinite
from typing import Any, Final

from persistent import Persistent

from batos.objects.method import DEEPEST, Intent, Method, Primitive
from batos.objects.prototype import UvmObject, delegation, lookup, own_slots, parents_of, reference
from batos.protocol.image_documents import MirroredObject


class Mirror:
    """Reads one object and its parents, and never marks a record as changed."""

    def __init__(self, obj: UvmObject) -> None:
        self._obj = obj

    def slots(self) -> Mapping[str, Any]:
        """Return the object's own slots, read-only."""
        return own_slots(self._obj)

    def lineage(self) -> tuple[UvmObject, ...]:
        """Return the object and everything it delegates to, in the order in which a message searches them."""
        return tuple(delegation(self._obj))

    def source(self, selector: str) -> str | None:
        """Return the source of the method that answers the selector, or None if no method answers it."""
        found = lookup(self._obj, selector)
        return found.value.source if found and isinstance(found.value, Method) else None

    def describe(self) -> MirroredObject:
        """Describe the object as JSON-compatible data.

        Records are shown as references ("oid:0x2a") and not loaded. Methods and intents are shown with their fields
        under `method` and `intent`, primitives by name under `primitive`.
        """
        return {
            "oid": reference(self._obj),
            "parents": [reference(parent) for parent in parents_of(self._obj)],
            "lineage": [reference(each) for each in self.lineage()],
            "slots": {name: as_json(value) for name, value in sorted(self.slots().items())},
        }


def as_json(value: object) -> Any:
    """Convert a slot's value to JSON-compatible data, with text in place of anything that JSON has no form for.

    Never raises: a container that contains itself, or is nested more than `DEEPEST` deep, becomes "…".
    """
    return _as_json(value, ())


def _as_json(value: object, around: tuple[int, ...]) -> Any:
    """Convert a value. `around` holds the ids of the containers that the value stands in."""
    for kinds, show in _SHOWN:
        if isinstance(value, kinds):
            return show(value)
    if isinstance(value, (Method, Intent)):
        # The fields themselves, not `as_dict`: what is shown is made anew anyway.
        written = {each.name: getattr(value, each.name) for each in fields(value)}
        return {type(value).__name__.lower(): _as_json(written, around)}
    if isinstance(value, Persistent):
        return reference(value)
    if isinstance(value, (dict, list, tuple, Set)):
        if id(value) in around or len(around) >= DEEPEST:
            return _CUT
        return _contents(value, (*around, id(value)))
    return _text(value)


def _contents(value: dict[Any, Any] | list[Any] | tuple[Any, ...] | Set[Any], around: tuple[int, ...]) -> Any:
    if isinstance(value, dict):
        return {_text(key): _as_json(each, around) for key, each in value.items()}
    shown_each = [_as_json(each, around) for each in value]
    return sorted(shown_each, key=str) if isinstance(value, Set) else shown_each


def _text(value: object) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of more digits than Python writes
        return _CUT


_CUT: Final = "…"

#: JSON's writer refuses a whole number of more digits than Python turns into text.
_LONGEST: Final = 4096

_SHOWN: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((type(None), bool, str), lambda value: value),
    (int, lambda value: value if value.bit_length() <= _LONGEST else hex(value)),
    (float, lambda value: value if isfinite(value) else str(value)),
    (Primitive, lambda value: {"primitive": value.name}),
    (bytes, lambda value: f"{len(value)} bytes"),
    (date, lambda value: value.isoformat()),
)
