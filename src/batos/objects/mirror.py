"""A mirror: looking at an object from outside, without asking it, changing it or thinking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from datetime import date
from math import isfinite
from typing import Any

from persistent import Persistent

from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import UvmObject, delegation, lookup, own_slots, parents_of, reference


class Mirror:
    """Reflects one object; it reads the object and its parents, and marks nothing."""

    def __init__(self, obj: UvmObject) -> None:
        self._obj = obj

    def slots(self) -> Mapping[str, Any]:
        """The object's own slots, read-only."""
        return own_slots(self._obj)

    def lineage(self) -> tuple[UvmObject, ...]:
        """The object and everything it delegates to, in the order in which a message looks for its slot."""
        return tuple(delegation(self._obj))

    def who_defines(self, selector: str) -> UvmObject | None:
        """The object whose slot answers the selector, or None."""
        found = lookup(self._obj, selector)
        return found.holder if found else None

    def source(self, selector: str) -> str | None:
        """The source of the method that answers the selector; None where what answers is no method."""
        found = lookup(self._obj, selector)
        return found.value.source if found and isinstance(found.value, Method) else None

    def describe(self) -> dict[str, Any]:
        """The object as JSON can hold it.

        Records are shown as references ("oid:0x2a") and not loaded; methods and intents are shown with their
        fields under `method` and `intent`, primitives by name under `primitive`.
        """
        return {
            "oid": reference(self._obj),
            "parents": [reference(parent) for parent in parents_of(self._obj)],
            "lineage": [reference(each) for each in self.lineage()],
            "slots": {name: shown(value) for name, value in sorted(self.slots().items())},
        }


def shown(value: Any) -> Any:
    """A slot's value as JSON can hold it; what JSON has no form for is shown as text."""
    for kinds, show in _SHOWN:
        if isinstance(value, kinds):
            return show(value)
    return str(value)


_SHOWN: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((type(None), bool, int, str), lambda value: value),
    (float, lambda value: value if isfinite(value) else str(value)),
    (Primitive, lambda value: {"primitive": value.name}),
    (Method, lambda value: {"method": shown(value.as_dict())}),
    (Intent, lambda value: {"intent": shown(value.as_dict())}),
    (Persistent, reference),
    (dict, lambda value: {str(key): shown(each) for key, each in value.items()}),
    ((list, tuple), lambda value: [shown(each) for each in value]),
    (Set, lambda value: sorted(map(shown, value), key=str)),
    (bytes, lambda value: f"{len(value)} bytes"),
    (date, lambda value: value.isoformat()),
)
