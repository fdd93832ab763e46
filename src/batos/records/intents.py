"""Find the intent of a slot: the one in it, or the one that the method in its place was made from."""

from __future__ import annotations

from typing import Final

from batos.objects.method import Intent, IntentKind, Method
from batos.objects.prototype import FoundSlot, UvmObject, lookup
from batos.records.methods import lineage_of

#: Kinds that a slot's name says, for a method that was written without an intent.
_NAMED: Final[tuple[IntentKind, ...]] = ("facet", "protocol")


def is_interpretable(intent: Intent) -> bool:
    """Return True if an intent can be interpreted by a persona; tools and prototypes are computed."""
    return intent.kind not in ("tool", "prototype")


def kind_of(intent: Intent | None, selector: str) -> IntentKind:
    """Return the kind of a slot's behaviour: as its intent declares it, else as the slot's name says."""
    if intent is not None:
        return intent.kind
    return next((kind for kind in _NAMED if selector.endswith(f"_{kind}_")), "method")


def intent_in(found: FoundSlot, selector: str) -> Intent | None:
    """Return the intent behind the value that answers a selector; None for a value that was not declared by one."""
    if isinstance(found.value, Intent):
        return found.value
    holder = found.holder
    if not isinstance(found.value, Method) or holder._p_jar is None or holder._p_oid is None:
        return None
    lineage = lineage_of(holder._p_jar.root(), holder, selector)
    return None if lineage is None else lineage.intent


def intent_of(receiver: UvmObject, selector: str) -> Intent | None:
    """Return the intent behind the value that answers a selector of a receiver; None where there is none."""
    found = lookup(receiver, selector)
    return None if found is None else intent_in(found, selector)
