"""Tools that answers forged: declared in `tools_obj` when the thought that wished for them is committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from batos.image import roots
from batos.image.records import SLOT_TRUST
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, lookup, own_slots
from batos.records.methods import digest_of, lineage_of

#: The kind of contribution that a forged tool is: {selector, intent, trust}.
KIND: Final = "tool"
#: Trust classes of values that come only from the Architect, the codex and the models.
OWN: Final = frozenset({"user", "model"})


def is_free(holder: UvmObject, selector: str, intent: Intent) -> bool:
    """Test if the tool may have this name: nothing there or in what all objects have has it, or the same wish."""
    found = lookup(holder, selector)
    if found is None:
        return True
    value = found.value
    if isinstance(value, Method):
        return found.holder is holder and value.provenance.get("intent") == digest_of(intent)
    return found.holder is holder and isinstance(value, Intent) and digest_of(value) == digest_of(intent)


def fold(root: Root, mission: str, payload: Mapping[str, Any]) -> None:
    """Declare the tool that a committed mission forged, unless another has that name by now."""
    holder, selector, intent = root[roots.TOOLS], payload["selector"], Intent(**payload["intent"])
    if not is_free(holder, selector, intent) or isinstance(own_slots(holder).get(selector), Method):
        return
    setattr(holder, selector, intent)
    if payload["trust"] not in OWN:  # so that no method is made of it which nobody has let in
        setattr(holder, SLOT_TRUST, {**(own_slots(holder).get(SLOT_TRUST) or {}), selector: payload["trust"]})


def is_taken(root: Root, selector: str, intent: str) -> bool:
    """Test if the slot holds a tool, made or declared, of another wish than the one with this digest."""
    value = own_slots(root[roots.TOOLS]).get(selector)
    if isinstance(value, Method):
        return value.provenance.get("intent") != intent
    return isinstance(value, Intent) and digest_of(value) != intent


def list_wishes(thought: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the tools that a thought contributes: the selector, and the digest of the intent."""
    for kind, payload in thought.get("contributions", ()):
        if kind == KIND:
            yield payload["selector"], digest_of(Intent(**payload["intent"]))


def is_declared(root: Root, selector: str, intent: str) -> bool:
    """Test if the slot holds the intent of this digest, of which nothing is made."""
    value = own_slots(root[roots.TOOLS]).get(selector)
    return isinstance(value, Intent) and digest_of(value) == intent


def forget(root: Root, selector: str, intent: str) -> None:
    """Take the intent of this digest away again, of which nothing was ever made."""
    holder = root[roots.TOOLS]
    value = own_slots(holder).get(selector)
    if not isinstance(value, Intent) or digest_of(value) != intent or lineage_of(root, holder, selector) is not None:
        return
    delattr(holder, selector)
    before = own_slots(holder).get(SLOT_TRUST) or {}
    trusts = {slot: trust for slot, trust in before.items() if slot != selector}
    if trusts != before:
        setattr(holder, SLOT_TRUST, trusts)
