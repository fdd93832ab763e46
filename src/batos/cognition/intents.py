"""What a slot was declared for: the intent in it, or the one that the method in its place was made from."""

from __future__ import annotations

from batos.image.methods import lineage_of
from batos.objects.method import Intent, Method
from batos.objects.prototype import Found, UvmObject, lookup


def is_spoken(intent: Intent) -> bool:
    """Whether it can be interpreted: a tool computes, and what no persona says has no voice to say it with."""
    return intent.kind not in ("tool", "prototype")


def intent_in(found: Found, selector: str) -> Intent | None:
    """The intent behind what answers a selector; None: it is neither intent nor method, or nobody declared it."""
    if isinstance(found.value, Intent):
        return found.value
    holder = found.holder
    if not isinstance(found.value, Method) or holder._p_jar is None or holder._p_oid is None:
        return None
    lineage = lineage_of(holder._p_jar.root(), holder, selector)
    return None if lineage is None else lineage.intent


def intent_of(receiver: UvmObject, selector: str) -> Intent | None:
    """The same for whatever answers this receiver."""
    found = lookup(receiver, selector)
    return None if found is None else intent_in(found, selector)
